package gemini

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func write(t *testing.T, path, data string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadPlan(t *testing.T) {
	tmp := t.TempDir()
	project := filepath.Join(tmp, "work")
	chat := write(t, filepath.Join(project, "chats", "session-2026-11-30T10-00-65a45b4d.jsonl"), `{"sessionId":"`+sid+`","projectHash":"00"}`+"\n")
	plans := filepath.Join(project, sid, "plans")
	write(t, filepath.Join(plans, "plan.md"), "the plan")
	write(t, filepath.Join(plans, "deep", "plan.md"), "a deep plan")
	write(t, filepath.Join(plans, "limit.md"), strings.Repeat("x", maxPlan))
	write(t, filepath.Join(plans, "long.md"), strings.Repeat("x", maxPlan+1))
	write(t, filepath.Join(project, sid, "secret"), "a secret")
	outside := write(t, filepath.Join(tmp, "outside"), "outside")
	for name, to := range map[string]string{"out.md": outside, "up.md": "../secret", "in.md": "plan.md"} {
		if err := os.Symlink(to, filepath.Join(plans, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(plans, "pipe.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A session whose plans are a link to somewhere else.
	if err := os.MkdirAll(filepath.Join(project, "linked"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(tmp, filepath.Join(project, "linked", "plans")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ session, file, want string }{
		{sid, "plan.md", "the plan"},
		{"", "plan.md", "the plan"}, // the header tells the session
		{sid, "deep/plan.md", "a deep plan"},
		{sid, "in.md", "the plan"},
		{sid, "limit.md", strings.Repeat("x", maxPlan)},
		{sid, "long.md", ""},
		{sid, "none.md", ""},
		{sid, "", ""},
		{sid, "deep", ""},
		{sid, "pipe.md", ""},
		{sid, "out.md", ""},
		{sid, "up.md", ""},
		{sid, "../secret", ""},
		{sid, "deep/../../secret", ""},
		{sid, outside, ""},
		{"linked", "outside", ""},
		{"other", "plan.md", ""},
		{"..", "outside", ""},
	} {
		if got := readPlan(chat, c.session, c.file); got != c.want {
			t.Errorf("readPlan(%q, %q) = %.40q, want %.40q", c.session, c.file, got, c.want)
		}
	}
	if got := readPlan(filepath.Join(project, "chats", "gone.jsonl"), "", "plan.md"); got != "" {
		t.Errorf("plan of a file that is gone = %q", got)
	}
}

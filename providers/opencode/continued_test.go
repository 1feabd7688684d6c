package opencode

import (
	"fmt"
	"testing"
)

// The log of 1.18.33 names the session that -c opened with its first prompt
// only. An agent has to be known before, or a resumed session that comes back
// in another multiplexer would be another agent (D14).
func TestContinued(t *testing.T) {
	const began = 1796064800000 // of the process
	type row struct {
		id, parent, dir, project string
		updated                  int64
	}
	old, mine := row{"ses_old", "", "/w/dir", "global", began - 9000}, row{"ses_mine", "", "/w/dir", "global", began - 5000}
	for name, tt := range map[string]struct {
		args []string
		rows []row
		want string
	}{
		"the last that changed":      {[]string{"-c"}, []row{old, mine}, "3 ses_mine at opencode.db"},
		"in full":                    {[]string{"run", "--continue", "go"}, []row{old, mine}, "3 ses_mine at opencode.db"},
		"not asked for":              {nil, []row{old, mine}, ""},
		"a fork":                     {[]string{"-c", "--fork"}, []row{old, mine}, ""},
		"no session":                 {[]string{"-c"}, nil, ""},
		"elsewhere":                  {[]string{"-c"}, []row{mine, {"ses_b", "", "/w/other", "global", began - 1}, {"ses_c", "", "/w/dir2", "global", began - 1}}, "3 ses_mine at opencode.db"},
		"below":                      {[]string{"-c"}, []row{mine, {"ses_b", "", "/w/dir/sub", "global", began - 1}}, ""},
		"below, and older":           {[]string{"-c"}, []row{mine, {"ses_b", "", "/w/dir/sub", "global", began - 8000}}, "3 ses_mine at opencode.db"},
		"a worktree of the same":     {[]string{"-c"}, []row{{"ses_a", "", "/w/dir", "abc", began - 5000}, {"ses_b", "", "/w/tree", "abc", began - 1}}, ""},
		"another repository":         {[]string{"-c"}, []row{{"ses_a", "", "/w/dir", "abc", began - 5000}, {"ses_b", "", "/w/tree", "def", began - 1}}, "3 ses_a at opencode.db"},
		"two at once":                {[]string{"-c"}, []row{mine, {"ses_b", "", "/w/dir", "global", began - 5000}}, ""},
		"a subagent's":               {[]string{"-c"}, []row{mine, {"ses_b", "ses_mine", "/w/dir", "global", began - 1}}, "3 ses_mine at opencode.db"},
		"changed since":              {[]string{"-c"}, []row{old, {"ses_mine", "", "/w/dir", "global", began + 1}}, "4 ses_mine at opencode.db"},
		"another changed since":      {[]string{"-c"}, []row{mine, {"ses_b", "", "/w/dir", "global", began + 1}}, "4 ses_b at opencode.db"},
		"not for a month":            {[]string{"-c"}, []row{{"ses_mine", "", "/w/dir", "global", began - 31*24*3600*1000}}, ""},
		"the directory of arguments": {[]string{"../dir2", "-c"}, []row{mine, {"ses_b", "", "/w/dir2", "global", began - 1}}, "3 ses_b at opencode.db"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, "opencode.db")
			for _, r := range tt.rows {
				h.session(r.id, r.parent, r.dir, 1, r.updated)
				execute(t, h.db, "UPDATE session SET project_id = ? WHERE id = ?", r.project, r.id)
			}
			p := h.process(0, tt.args...)
			p.CWD = "/w/dir"
			if got := ask(t, p); got != tt.want {
				t.Errorf("%q: %s, want %s", tt.args, got, tt.want)
			}
		})
	}
}

// Where there may be sessions that are not looked at, one of them could be
// meant.
func TestContinuedOfMany(t *testing.T) {
	h := newHome(t, "opencode.db")
	for i := range maxSessions {
		h.session(fmt.Sprintf("ses_many%03d", i), "", "/w/other", 1, 1)
	}
	h.session("ses_a", "", "/w/dir", 1, 1796064799000)
	p := h.process(0, "-c")
	p.CWD = "/w/dir"
	if got := ask(t, p); got != "" {
		t.Errorf("%s, want nothing", got)
	}
}

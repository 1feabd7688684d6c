package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"steno/ipc/wire"
	"steno/providers"
)

func TestPackageVersion(t *testing.T) {
	dir := t.TempDir()
	file := func(path, text string) string {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(to, name string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file("npm/pkg/package.json", `{"name":"x","version":"1.2.3-beta.4"}`)
	file("npm/odd/package.json", `{"version":"whatever it is"}`)
	for path, want := range map[string]string{
		link(file("npm/pkg/bin/tool", ""), "tool"):        "1.2.3-beta.4",
		link(file("share/versions/2.1.197", ""), "named"): "2.1.197",
		file("share/3.4/tool", ""):                        "3.4",
		file("npm/odd/bin/tool", ""):                      "",
		filepath.Join(dir, "missing"):                     "",
	} {
		if got := packageVersion(path); got != want {
			t.Errorf("packageVersion(%s) = %q, want %q", strings.TrimPrefix(path, dir), got, want)
		}
	}
}

// TestDoctorOnProviders gives a doctor what a daemon says of one program.
func TestDoctorOnProviders(t *testing.T) {
	d := doctor{app: &app{getenv: func(string) string { return "" }}}
	first, fourth := uint64(0), uint64(4)
	about := providers.About{Name: "X", Version: "1.0", Hints: []string{"a hook would make it exact"}}
	d.provider(wire.ProviderStatus{
		ID: "x", Roots: []wire.RootStatus{{Dir: "/a", Exists: true}, {Dir: "/b"}}, Artifacts: 3, Processes: 2, Bound: 1, Failures: 1,
		Drift: []string{"new.kind"}, Unbound: []wire.Unbound{{PID: 6, PaneID: &first, Reason: "none"}, {PID: 7, PaneID: &fourth, Reason: "two sessions"}, {PID: 8, Reason: "started by x"}},
	}, about)
	var got []string
	for _, f := range d.findings {
		got = append(got, string(f.Verdict)+" "+f.Check+": "+f.Detail)
	}
	want := []string{
		"ok x files: 1 directories, 3 sessions seen",
		"warn x records: 1 could not be read since the daemon started",
		"warn x drift: 1 record types were never seen before: new.kind",
		"warn x processes: pid 6 in pane 0 has no session: none",
		"warn x processes: pid 7 in pane 4 has no session: two sessions",
		"ok x processes: pid 8 owns no pane: started by x",
		"ok x evidence: a hook would make it exact",
	}
	if !slices.Equal(got, want) {
		t.Errorf("findings:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Every provider says what its program is called and what it was tried with.
func TestProvidersSayWhatTheyAre(t *testing.T) {
	for _, p := range allProviders() {
		d, ok := p.(providers.Describer)
		if !ok {
			t.Errorf("%s describes nothing", p.ID())
			continue
		}
		if a := d.About(); a.Name == "" || len(a.Programs) == 0 || !versionLike(a.Version) {
			t.Errorf("%s: About = %+v", p.ID(), a)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// A configuration file is refused with one line that names it, or gives settings
// that are within their bounds: each is taken again as it is printed.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		"", "# nothing", "sweep = \"30s\"", "sweep = 30", "retention_bytes = \"2GiB\"", "retention_bytes = 1048576", "retention_bytes = 1.5",
		"retention_events = 9223372036854775807", "tmux = \"\"", "tmux_sockets = [\"/tmp/a\", \"\", \"b,c\"]", "socket = \"~/s\"\nstate_dir = \"/v\"",
		"[roots]\nclaude = [\"~/x\", \"/y/../z\"]", "[roots]\nnobody = [\"/x\"]", "roots = {codex = [\"relative\"]}", "sweep = \"1h\"\nsweep = \"2h\"",
		"log_level = \"\\u0000\"", "throttle = \"\"\"\n5ms\"\"\"", "watch_budget = -1", "[[roots]]", "a.b.c = 1", "\xff", strings.Repeat("[", 1000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		load := func() (*config, error) {
			return loadConfig(sources{
				getenv: func(name string) string { return map[string]string{"HOME": "/home/somebody"}[name] },
				flags:  map[string]string{"config": path},
			})
		}
		c, err := load()
		if err != nil {
			if text := err.Error(); !strings.Contains(text, path) || strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("the error is no line that names the file: %q", text)
			}
			return
		}
		for _, s := range settings {
			text := s.get(c)
			if err := s.set(c, text); err != nil || s.get(c) != text {
				t.Errorf("%s is %q, which is not taken again: %v, %q", s.key, text, err, s.get(c))
			}
		}
		for id, dirs := range c.Roots {
			for _, dir := range dirs {
				if !filepath.IsAbs(dir) {
					t.Errorf("a root of %s is %q", id, dir)
				}
			}
		}
	})
}

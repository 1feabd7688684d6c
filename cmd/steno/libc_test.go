package main

import (
	"encoding/json"
	"os/exec"
	"testing"
)

// TestLibcPin: modernc.org/sqlite is translated C. It works with the version of
// modernc.org/libc that its own go.mod asks for, and its documentation says so;
// another one may corrupt memory without a word.
func TestLibcPin(t *testing.T) {
	type module struct{ Version, GoMod string }
	list := func(path string) module {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-json", path).Output()
		if err != nil {
			t.Fatalf("go list -m %s: %v", path, err)
		}
		var m module
		if err := json.Unmarshal(out, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	sqlite, libc := list("modernc.org/sqlite"), list("modernc.org/libc")
	if sqlite.GoMod == "" {
		t.Fatal("the go.mod of modernc.org/sqlite is not known")
	}
	out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", sqlite.GoMod).Output()
	if err != nil {
		t.Fatalf("go mod edit: %v", err)
	}
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	for _, r := range mod.Require {
		if r.Path == "modernc.org/libc" {
			if r.Version != libc.Version {
				t.Errorf("modernc.org/libc is %s, modernc.org/sqlite %s wants %s", libc.Version, sqlite.Version, r.Version)
			}
			return
		}
	}
	t.Errorf("modernc.org/sqlite %s does not require modernc.org/libc", sqlite.Version)
}

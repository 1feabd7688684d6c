package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root of the module, from this package's directory.
const moduleRoot = "../.."

// rule says what a package may import beside the standard library, and why it
// may import no more.
type rule struct {
	own, foreign []string
	why          string
}

var (
	sqliteModule  = "modernc.org/sqlite"
	zerologModule = "github.com/rs/zerolog"
	libcModule    = "modernc.org/libc"
	xsysModule    = "golang.org/x/sys"
)

// importRules is the table of ARCHITECTURE.md. A package that is not here must
// be added on purpose.
var importRules = map[string]rule{
	"providers":              {nil, nil, "the vocabulary is a leaf: everything points at it"},
	"providers/providertest": {[]string{"providers"}, nil, "the contract of providers holds without the rest of Steno"},
	"providers/observetest":  {[]string{"providers", "store", "observer", "ipc/wire"}, []string{zerologModule}, "a provider's tests may run a real observer, the provider may not"},
	"providers/scan":         {nil, nil, "walking over JSON knows no program's format"},
	"providers/files":        {nil, nil, "reading a small file knows no program's format"},
	"providers/readdb":       {nil, []string{sqliteModule, libcModule}, "reading a database knows no program's tables, and is the one place beside the store that knows SQLite"},
	"owned":                  {nil, nil, "making private directories knows nothing of what lies in them"},
	"store":                  {[]string{"owned"}, []string{sqliteModule, xsysModule}, "the store does not know what an event means"},
	"ipc/wire":               {nil, nil, "the wire's objects are a leaf: storage and transport can change without them"},
	"ipc":                    {[]string{"ipc/wire", "store", "owned"}, []string{zerologModule, xsysModule}, "the protocol reads the store and asks the rest through one small interface"},
	"observer/watch":         {nil, []string{"github.com/fsnotify/fsnotify", xsysModule}, "watching knows directories, not agents"},
	"observer/tail":          {[]string{"providers"}, []string{xsysModule}, "tailing knows bytes and records, not their meaning"},
	"observer/bind":          {[]string{"providers"}, []string{xsysModule}, "the decision who owns a session is pure"},
	"observer/mux":           {nil, nil, "a multiplexer is asked, not imported"},
	"observer": {
		[]string{"providers", "store", "ipc/wire", "observer/watch", "observer/tail", "observer/bind", "observer/mux"},
		[]string{zerologModule, "golang.org/x/sync", xsysModule}, "the observer is the one translator, and names no concrete provider",
	},
	"cmd/steno": {
		[]string{"providers", "store", "ipc", "ipc/wire", "observer", "observer/watch", "owned"},
		[]string{zerologModule, xsysModule, "golang.org/x/sync", "github.com/spf13/cobra", "github.com/coreos/go-systemd/v22", "github.com/BurntSushi/toml"},
		"only the command knows flags, configuration and the list of providers",
	},
	"cmd/standin":   {nil, []string{xsysModule, sqliteModule}, "the stand-in shares no code with what it tests"},
	"cmd/e2e":       {nil, nil, "the end-to-end suite is tests alone"},
	"cmd/faults":    {nil, nil, "the fault suite is tests alone"},
	"cmd/e2e/model": {nil, nil, "the scripted model server shares no code with what it helps to test"},
}

// aProvider is the rule of every providers/<id>, so that a new one changes
// nothing here.
var aProvider = rule{[]string{"providers", "providers/scan", "providers/files", "providers/readdb"}, nil, "a provider knows its format and nothing of Steno; databases are read through readdb alone"}

func isProvider(pkg string) bool {
	_, shared := importRules[pkg]
	return strings.HasPrefix(pkg, "providers/") && !shared
}

func ruleOf(pkg string) (rule, bool) {
	if isProvider(pkg) {
		return aProvider, true
	}
	r, ok := importRules[pkg]
	return r, ok
}

// testModules lists what tests may import beside: whatever some package has
// already, and the scripts of the command line.
func testModules() []string {
	out := []string{"github.com/rogpeppe/go-internal"}
	for _, r := range importRules {
		out = append(out, r.foreign...)
	}
	return out
}

// TestImports parses the files instead of asking the go command, whose answer
// the test cache does not know to be out of date.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(moduleRoot, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != moduleRoot && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "dist") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel(moduleRoot, path)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(rel))
		seen[pkg] = true
		checkFile(t, pkg, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range importRules {
		if !seen[pkg] {
			t.Errorf("importRules names package %s, which does not exist", pkg)
		}
	}
}

func checkFile(t *testing.T, pkg, path string) {
	t.Helper()
	r, ok := ruleOf(pkg)
	if !ok {
		t.Errorf("%s: package %s has no rule in importRules", path, pkg)
		return
	}
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
	if err != nil {
		t.Errorf("parse: %v", err)
		return
	}
	isTest := strings.HasSuffix(path, "_test.go")
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Errorf("%s: import %s: %v", path, spec.Path.Value, err)
			continue
		}
		own, isOwn := strings.CutPrefix(imported, "steno/")
		host, _, _ := strings.Cut(imported, "/")
		switch {
		case isOwn && isTest:
			// Tests may look at whatever they exercise.
		case isOwn && isProvider(own) && pkg == "cmd/steno" && filepath.Base(path) == "providers.go":
			// The one list of providers.
		case isOwn && !slices.Contains(r.own, own):
			t.Errorf("%s imports %s: %s", path, imported, r.why)
		case !isOwn && strings.Contains(host, "."):
			allowed := r.foreign
			if isTest {
				allowed = testModules()
			}
			if !slices.ContainsFunc(allowed, func(p string) bool { return imported == p || strings.HasPrefix(imported, p+"/") }) {
				t.Errorf("%s imports %s: %s", path, imported, r.why)
			}
		}
		if spec.Name != nil && spec.Name.Name == "_" && imported != sqliteModule && imported != "embed" && !isTest {
			t.Errorf("%s imports %s for its side effect: only the SQL driver may", path, imported)
		}
	}
}

package faults

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// fieldList are the rows of the field list.
var fieldList = strings.Fields(`
	A1 A2 A3 A4 A5 A6 A8 A9 A10 A11 A13 A14 A16 A17 A18 A19 A21 A22 A23 A24 A25 A26 A27 A28 A30 A31
	B2 B3 B4 B5 B6 B7 B9 B10 B12 B13 B15 B16 B17 B18 B19 B20 B23 B24 B22
	C1 C3 C4 C5 C6 C7 C8 C10 C11 C12 C14 C15 C16 C17 C18 C19 C20 C21 C23 C24 C25 C26 C27
	D2 D3 D4 D6 D7 D9 D10 D11 D12 D14 D15 D16 D17 D18 D20 D21 D22 D24 D25 D26 D28 D29 D31 D32 D33 D34 D35
	E1 E2 E3 E4 E6
	F1 F2 F4 F5 F6 F7 F9 F10 F11 F13 F14 F15 F17 F18 F19
	G1 G2 G3 G5 G7 G9 G10 G11 G12 G14 G13
	H1 H2 H3 H4 H17 H5 H6 H18 H8 H9 H10 H11 H12 H13
`)

var (
	quoted   = regexp.MustCompile("`([^`]*)`")
	testName = regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w*$`)
	rowRange = regexp.MustCompile(`^([A-H])(\d+) to [A-H](\d+)$`)
)

// RELIABILITY.md says of each row of the field list where it is tested. The tests
// and the recordings that it names are there.
func TestFieldList(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(moduleRoot, "RELIABILITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(data), "## Faults of the field\n")
	if !ok {
		t.Fatal("RELIABILITY.md has no such heading")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	said := map[string]bool{}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.HasPrefix(cells[1], " row") || strings.HasPrefix(cells[1], " ---") {
			continue
		}
		for part := range strings.SplitSeq(cells[1], ",") {
			part = strings.TrimSpace(part)
			if m := rowRange.FindStringSubmatch(part); m != nil {
				for n := atoi(m[2]); n <= atoi(m[3]); n++ {
					said[m[1]+strconv.Itoa(n)] = true
				}
			}
			said[part] = true
		}
		named(t, strings.TrimSpace(cells[1]), cells[2])
	}
	for _, id := range fieldList {
		if !said[id] {
			t.Errorf("nothing is said of row %s", id)
		}
	}
}

// named checks what a cell names: after a package come its tests, and the
// recordings of a provider.
func named(t *testing.T, row, cell string) {
	pkg := ""
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		word := m[1]
		switch {
		case testName.MatchString(word):
			if !hasTest(t, pkg, word) {
				t.Errorf("%s: package %q has no %s", row, pkg, word)
			}
		case isDir(filepath.Join(moduleRoot, word)):
			pkg = word
		case strings.HasPrefix(pkg, "providers/") && !strings.Contains(word, " "):
			found, err := filepath.Glob(filepath.Join(moduleRoot, "testdata", pkg, word) + "*")
			if err != nil || len(found) == 0 {
				t.Errorf("%s: %s has no recording %s", row, pkg, word)
			}
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func hasTest(t *testing.T, pkg, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(moduleRoot, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}

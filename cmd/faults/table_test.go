package faults

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the figures of "+reportVar+" into RELIABILITY.md")

// The table is between these lines of RELIABILITY.md.
const (
	tableBegin = "<!-- faults: begin, written by make faults -->"
	tableEnd   = "<!-- faults: end -->"
	tableHead  = "| fault | how it is caused | tried | lost | repeated | reused | recovery, median and most | note |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- |\n"
)

// literal finds the faults that have a fixed name.
var literal = regexp.MustCompile(`Fault:\s+"([^"]+)"`)

// In the table nothing was lost, repeated or reused; faults without a row are
// named in the log. With -update, rows are replaced by newer figures.
func TestTable(t *testing.T) {
	path := filepath.Join(moduleRoot, "RELIABILITY.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableBegin+"\n")
	old, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("RELIABILITY.md has no lines %q and %q", tableBegin, tableEnd)
	}
	rows := map[string]string{}
	for line := range strings.Lines(old) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| fault ") && !strings.HasPrefix(line, "| ---") {
			rows[strings.TrimPrefix(cells[0], "| ")] = line
		}
	}
	if *update {
		fresh, err := freshRows(os.Getenv(reportVar))
		if err != nil {
			t.Fatal(err)
		}
		for fault, row := range fresh {
			rows[fault] = row
		}
		all := tableHead
		for _, fault := range inOrder(rows) {
			all += rows[fault]
		}
		if err := os.WriteFile(path, []byte(before+tableBegin+"\n"+all+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for fault, row := range rows {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), " | ")
		if len(cells) != 8 || cells[3] != "0" || cells[4] != "0" || cells[5] != "0" {
			t.Errorf("the row of %q does not have three zeros: %s", fault, row)
		}
	}
	for _, fault := range literals(t) {
		has := rows[fault] != ""
		if strings.HasSuffix(fault, " ") { // the beginning of several names
			for name := range rows {
				has = has || strings.HasPrefix(name, fault)
			}
		}
		if !has {
			t.Logf("no row for %q: make faults RUN=NameOfItsTest", fault)
		}
	}
}

// freshRows are the rows of a file of figures. The last of one fault counts.
func freshRows(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no test reported figures: %w", err)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows := map[string]string{}
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		var r struct {
			figures
			Median int64 `json:"recovery_median_ms"`
			Max    int64 `json:"recovery_max_ms"`
		}
		if err := json.Unmarshal(scan.Bytes(), &r); err != nil {
			return nil, err
		}
		recovery := "-"
		if r.Median >= 0 {
			recovery = seconds(r.Median) + ", " + seconds(r.Max)
		}
		rows[r.Fault] = fmt.Sprintf("| %s | %s | %d %s | %d | %d | %d | %s | %s |\n", r.Fault, r.How, r.Tried, r.Unit,
			r.Lost, r.Repeated, r.Reused, recovery, cmp.Or(r.Note, "-"))
	}
	return rows, scan.Err()
}

func seconds(ms int64) string { return fmt.Sprintf("%.2f s", float64(ms)/1000) }

// inOrder sorts by the number that a fault's name begins with.
func inOrder(rows map[string]string) []string {
	var all []string
	for fault := range rows {
		all = append(all, fault)
	}
	number := func(s string) int {
		word, _, _ := strings.Cut(s, " ")
		n, _ := strconv.Atoi(word)
		return n
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b)) })
	return all
}

func literals(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range literal.FindAllSubmatch(src, -1) {
			out = append(out, string(m[1]))
		}
	}
	return out
}

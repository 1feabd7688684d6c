package codex

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"steno/providers"
	"steno/providers/files"
	"steno/providers/scan"
)

// namesMax bounds session_index.jsonl, which has some 150 bytes for each name
// that a thread ever got. A longer one is not read: a name is only evidence
// when all of them were seen.
const namesMax = 1 << 20

// titleCut is where a title cuts a thread's name, in characters, before "..."
// (0.171.0).
const titleCut = 45

// titleItems are the parts of a terminal title, without the spinner that the
// first of them carries while the agent works: "⠙ name | directory".
func titleItems(title string) []string {
	var items []string
	for _, item := range strings.SplitN(title, "|", 16) {
		item = strings.TrimSpace(item)
		if r, n := utf8.DecodeRuneInString(item); r >= '\u2800' && r <= '\u28ff' {
			item = strings.TrimSpace(item[n:])
		}
		if item != "" {
			items = append(items, item)
		}
	}
	return items
}

// A title item of the thread id: the first 29 of its 36 characters and three
// dots (0.171.0, item "thread-id").
var titleID = regexp.MustCompile(`^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{5})\.\.\.$`)

// titled is the one id of ids that the title shows, "" otherwise.
func titled(title string, ids map[string]bool) string {
	var known []providers.Session
	for id := range ids {
		known = append(known, providers.Session{ID: id})
	}
	if ev := titleEvidence(title, known); len(ev) == 1 && ev[0].Refused == "" {
		return ev[0].Session
	}
	return ""
}

func titleEvidence(title string, known []providers.Session) []providers.Evidence {
	var ev []providers.Evidence
	for _, item := range titleItems(title) {
		m := titleID.FindStringSubmatch(item)
		if m == nil {
			continue
		}
		var hits []providers.Session
		for _, s := range known {
			if strings.HasPrefix(s.ID, m[1]) {
				hits = append(hits, s)
			}
		}
		for _, s := range hits {
			e := providers.Evidence{Rank: providers.Exact, Session: s.ID, Path: s.Path, Source: fromTitle, Refused: s.Internal}
			if len(hits) > 1 {
				e.Refused = "several threads begin with the id in the title"
			}
			ev = append(ev, e)
		}
	}
	return ev
}

// TitleActivity reads what the program publishes in its title (0.171.0, default
// items): "[ ! ] Action Required | name | directory", each second with "[ . ]",
// while an approval or a question is open, and a braille spinner in front of the
// name while it works. A title without either may be that of a ready program,
// or one that the user made of other items: it says nothing.
func (Provider) TitleActivity(title string) (providers.Activity, string) {
	items := titleItems(title)
	if len(items) > 0 && (items[0] == "[ ! ] Action Required" || items[0] == "[ . ] Action Required") {
		return providers.Waiting, "action required"
	}
	if r, _ := utf8.DecodeRuneInString(title); r > '\u2800' && r <= '\u28ff' {
		return providers.Busy, ""
	}
	return providers.NoActivity, ""
}

// nameEvidence finds the one thread whose name stands in the title. A fork
// inherits the name of its parent (its own line in the index says so), so a
// name of two threads proves nothing; nor does one that is the directory's.
func nameEvidence(home string, p providers.Process, known []providers.Session) ([]providers.Evidence, error) {
	var shown []string
	for _, item := range titleItems(p.Title) {
		if item != providers.ProgramName(p.CWD) && titleID.FindString(item) == "" && !strings.HasSuffix(item, "Action Required") {
			shown = append(shown, item)
		}
	}
	if len(shown) == 0 || home == "" {
		return nil, nil
	}
	names, err := threadNames(filepath.Join(home, "session_index.jsonl"))
	if err != nil {
		return nil, err
	}
	var hits []string
	for id, name := range names {
		for _, item := range shown {
			if cut := cutName(name); cut != "" && cut == item {
				hits = append(hits, id)
				break
			}
		}
	}
	if len(hits) != 1 {
		return nil, nil
	}
	for _, s := range known {
		if s.ID == hits[0] {
			return []providers.Evidence{{Rank: providers.Agreement, Session: s.ID, Path: s.Path, Source: fromName, Refused: s.Internal}}, nil
		}
	}
	return nil, nil
}

// cutName is a thread's name as a title shows it. The index itself cuts at 60
// characters, which is longer.
func cutName(name string) string {
	r := []rune(strings.TrimSpace(name))
	if len(r) > titleCut {
		return string(r[:titleCut]) + "..."
	}
	return string(r)
}

// threadNames reads the index: the last line of a thread wins. A file that is
// not there or too long has no names.
func threadNames(path string) (map[string]string, error) {
	f, _, err := files.Open(path)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, namesMax+1))
	if err != nil {
		return nil, fmt.Errorf("codex: read the index of thread names: %w", bare(err))
	}
	if len(b) > namesMax {
		return nil, nil
	}
	names := map[string]string{}
	for line := range bytes.Lines(b) {
		var id, name string
		scan.Members(line, func(key, val []byte) bool {
			switch string(key) {
			case "id":
				id = ident(val)
			case "thread_name":
				name = scan.Text(val)
			}
			return true
		})
		if id != "" {
			names[id] = name
		}
	}
	return names, nil
}

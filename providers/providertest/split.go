package providertest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"steno/providers"
)

// Case is one artifact of a corpus.
type Case struct {
	Name     string // folder/file, for the names of subtests
	File     string // where Data came from; "" when it was made in memory
	Artifact providers.Artifact
	Data     []byte
}

// Load reads every *.jsonl below dir, in the order of the names. The artifact
// of a file is what artifact says; a nil artifact gives provider id and the
// file's stem as the session.
func Load(t testing.TB, provider, dir string, artifact func(rel string) providers.Artifact) []Case {
	t.Helper()
	var cases []Case
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		a := providers.Artifact{Provider: provider, Path: "/corpus/" + filepath.ToSlash(rel),
			Session: strings.TrimSuffix(filepath.Base(path), ".jsonl")}
		if artifact != nil {
			a = artifact(filepath.ToSlash(rel))
		}
		cases = append(cases, Case{Name: strings.TrimSuffix(filepath.ToSlash(rel), ".jsonl"), File: path, Artifact: a, Data: data})
		return nil
	})
	if err != nil {
		t.Fatalf("load corpus: %v", err)
	}
	if len(cases) == 0 {
		t.Fatalf("load corpus: no *.jsonl below %s", dir)
	}
	sort.Slice(cases, func(i, j int) bool { return cases[i].Name < cases[j].Name })
	return cases
}

// Records are the records of a case: its lines; of a Document each line is one
// version of it.
func Records(c Case) []providers.Record {
	recs := Split(c.Data)
	if c.Artifact.Framing != providers.Document {
		return recs
	}
	for i := range recs {
		recs[i].Start, recs[i].End, recs[i].Framing = int64(i), int64(i+1), providers.Document
	}
	return recs
}

// Split cuts a JSONL artifact into records as a tailer does: a record ends with
// 0x0A, a last line without it is not there yet, blank lines are no records.
func Split(data []byte) []providers.Record {
	var out []providers.Record
	for at := 0; at < len(data); {
		n := bytes.IndexByte(data[at:], '\n')
		if n < 0 {
			break
		}
		line := data[at : at+n]
		r := providers.Record{Start: int64(at), End: int64(at + n + 1)}
		if at == 0 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		at += n + 1
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r.Data, r.Gap = line, gap(line)
		if r.Gap != providers.Whole {
			r.Data = nil
		}
		out = append(out, r)
	}
	return out
}

func gap(line []byte) providers.Gap {
	switch {
	case len(line) > providers.MaxRecord:
		return providers.Oversized
	case len(bytes.Trim(line, "\x00")) == 0:
		return providers.Padding
	case depth(line) > 512:
		return providers.TooDeep
	case bytes.TrimSpace(line)[0] != '{' || !json.Valid(line):
		return providers.Malformed
	}
	return providers.Whole
}

func depth(line []byte) int {
	deep, most, inside := 0, 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '{' || c == '[':
			deep++
			most = max(most, deep)
		case c == '}' || c == ']':
			deep--
		}
	}
	return most
}

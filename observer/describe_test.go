package observer

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"steno/providers"
)

// describer counts how often it is asked to describe a file.
type describer struct {
	fake
	asked *int
}

func (d describer) Describe(a providers.Artifact, first []byte) providers.Session {
	*d.asked++
	return d.fake.Describe(a, first)
}

// A file without a first record is read again when it has grown, but not beyond
// the longest record: a look at the processes costs no reading of what is known.
func TestFirstRecordIsReadSeldom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s1.jsonl")
	arts := []providers.Artifact{{Provider: "fake", Path: path, Session: "s1"}}
	p := &prober{}
	d := describer{asked: new(int)}
	describe := func(what string, want int) {
		t.Helper()
		*d.asked = 0
		for range 3 {
			was := p.described
			p.described = map[string]description{}
			p.describe(d, d, arts, was)
		}
		if *d.asked != want {
			t.Errorf("%s: read %d times in 3 looks, want %d", what, *d.asked, want)
		}
	}
	grow := func(b []byte) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	grow([]byte(`{"id":"x",`))
	describe("half a record", 1)
	grow([]byte(`"do":"note"}` + "\n"))
	describe("all of it", 1)
	grow(encodeRecords(t, records("t1")...))
	describe("more records", 0)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	grow(bytes.Repeat([]byte("x"), providers.MaxRecord+1))
	describe("another file, of no record", 1)
	grow([]byte("x"))
	describe("longer than a record can be", 0)
}

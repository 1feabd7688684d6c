package ipc

import (
	"bytes"
	"encoding/json"
	"testing"

	"steno/ipc/wire"
)

// Any line gives a request or an error. Its answer is one line of valid JSON
// that repeats the id, and it never panics on the way through the parameters.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ReadAgentEvents","params":{"after_sequence":1,"limit":2,"wait_ms":3,"kinds":["plan"],"agents":["a"]}}`,
		`{"jsonrpc":"2.0","id":"x","method":"AdmitPrompt","params":{"request_id":"r","prompt":"p"}}`,
		`{"jsonrpc":"2.0","id":null,"method":"Hello"}`, `{"jsonrpc":"2.0","method":"Hello"}`,
		`[]`, `{}`, ``, ` `, `null`, "\xff", `{"jsonrpc":"2.0","id":1e400,"method":"Hello"}`,
		`{"ID":3,"id":{},"jsonrpc":"2.0","method":"Hello"}`, "{\"id\":\"\\u0000\\ud800\u2028\"}",
		`{"jsonrpc":"2.0","id":1,"method":"Status","params":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') >= 0 || len(line) > wire.MaxRequest {
			return // not one line
		}
		req, e := parseRequest(line)
		if len(req.id) > maxID {
			t.Fatalf("an id of %d bytes", len(req.id))
		}
		var out []byte
		var id json.RawMessage
		if e != nil {
			if numbers[e.Code] == 0 {
				t.Fatalf("code %q", e.Code)
			}
			out, id = encodeError(req.id, e), req.id
		} else {
			var p readParams
			err := req.decode(&p)
			if err == nil {
				q, qerr := p.query(req.id)
				if qerr == nil && (q.Limit < 1 || q.Limit > wire.MaxLimit || q.MaxBytes < 990_100 || q.MaxBytes >= wire.MaxLine) {
					t.Fatalf("query %+v", q)
				}
				err = qerr
			}
			if err != nil && wireError(err).Code != CodeParams {
				t.Fatalf("parameters give %v", err)
			}
			if req.id == nil {
				return // a notification
			}
			out, id = appendPage(nil, req.id, widest), req.id
		}
		if bytes.IndexByte(out, '\n') != len(out)-1 || !json.Valid(out) {
			t.Fatalf("answer %q", out)
		}
		var back struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.Unmarshal(out, &back); err != nil {
			t.Fatal(err)
		}
		if id == nil {
			id = json.RawMessage("null")
		}
		if !bytes.Equal(back.ID, id) {
			t.Fatalf("id %q, want %q", back.ID, id)
		}
	})
}

// Lines come out of a reader the same however they went in.
func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"), 3, 16)
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaa\nb\n"), 1, 4)
	f.Fuzz(func(t *testing.T, data []byte, chunk, most int) {
		if chunk < 1 || chunk > 64 || most < 0 || most > 1<<10 || len(data) > 1<<12 {
			return
		}
		r := newChunked(data, chunk)
		lines := bytes.SplitAfter(data, []byte("\n"))
		for _, want := range lines[:len(lines)-1] {
			want = want[:len(want)-1]
			got, err := readLine(r, most)
			if len(want) > most {
				if err != errLong || got != nil {
					t.Fatalf("long line: %q, %v", got, err)
				}
			} else if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%q, %v, want %q", got, err, want)
			}
		}
		if got, err := readLine(r, most); err == nil || err == errLong {
			t.Fatalf("at the end: %q, %v", got, err)
		}
	})
}

package tail

import (
	"bytes"
	"encoding/json"
	"errors"

	"steno/providers"
)

const (
	depthMax   = 512  // levels of nesting in a record
	piecesMax  = 4096 // records and gaps of one line
	gapsMax    = 16   // gaps of one line
	spliceBack = 64   // bytes before a syntax error in which a spliced record may start
)

var bom = []byte("\xef\xbb\xbf")

// split appends the records of data, which starts at byte start of the file and
// ends with a newline. It stops after recordsMax of them, at the end of a line,
// and says where.
func split(recs []providers.Record, data []byte, start int64) ([]providers.Record, int64) {
	for len(data) > 0 && len(recs) < recordsMax {
		n := bytes.IndexByte(data, '\n')
		if n < 0 {
			n = len(data) - 1
		}
		end := start + int64(n) + 1
		recs = line(recs, data[:n], start, end)
		data, start = data[n+1:], end
	}
	return recs, start
}

// line appends the records of one line. b is the line without its newline.
func line(recs []providers.Record, b []byte, start, end int64) []providers.Record {
	if len(b) > providers.MaxRecord {
		return append(recs, providers.Record{Start: start, End: end, Gap: providers.Oversized})
	}
	skip := 0
	if start == 0 && bytes.HasPrefix(b, bom) {
		skip = len(bom)
	}
	text := trim(b[skip:])
	if len(text) == 0 {
		return recs
	}
	if n, gap := object(text); n == len(text) && gap == providers.Whole {
		return append(recs, providers.Record{Start: start, End: end, Data: text})
	}
	return pieces(recs, b, skip, start, end)
}

// pieces cuts a line that is not one record. The pieces tile the line: blanks
// belong to the piece after them, the newline to the last. NUL never stands in
// JSON, so runs of it are cut first. Each decision looks only at what follows, so
// the line reads the same from each of its borders.
func pieces(recs []providers.Record, b []byte, at int, start, end int64) []providers.Record {
	before, gaps := len(recs), 0
	from := start
	for at = blank(b, at); at < len(b); at = blank(b, at) {
		var r providers.Record
		n := run(b[at:])
		if n > 0 {
			r.Gap = providers.Padding
		} else {
			seg := b[at:]
			if i := bytes.IndexByte(seg, 0); i >= 0 {
				seg = seg[:i]
			}
			n, r.Gap = object(seg)
			switch r.Gap {
			case providers.Whole:
				r.Data = seg[:n]
			case providers.Malformed:
				n = splice(seg)
			}
		}
		if r.Gap != providers.Whole {
			gaps++
		}
		at += n
		r.Start, r.End = from, start+int64(at)
		from = r.End
		if recs = append(recs, r); gaps > gapsMax || len(recs)-before > piecesMax {
			return append(recs[:before], providers.Record{Start: start, End: end, Gap: providers.Malformed})
		}
	}
	if len(recs) > before {
		recs[len(recs)-1].End = end
	}
	return recs
}

// object looks at the JSON object that b starts with. It gives its length, and
// Whole, TooDeep, or Malformed (then the length is 0) when it is not one.
func object(b []byte) (int, providers.Gap) {
	n, depth := extent(b)
	switch {
	case n == 0:
		return 0, providers.Malformed
	case depth > depthMax:
		return n, providers.TooDeep
	case !json.Valid(b[:n]):
		return 0, providers.Malformed
	}
	return n, providers.Whole
}

// extent finds where the brackets that b starts with are closed, and how deep
// they nest. It checks nothing else; 0 means that they never close.
func extent(b []byte) (n, deepest int) {
	if len(b) == 0 || b[0] != '{' {
		return 0, 0
	}
	depth, text := 0, false
	for i := 0; i < len(b); i++ {
		c := b[i]
		if text {
			if c == '\\' {
				i++
			} else if c == '"' {
				text = false
			}
			continue
		}
		switch c {
		case '"':
			text = true
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, deepest
			}
		}
	}
	return 0, deepest
}

// splice gives how much of seg, which is not a record, has to be skipped: all of
// it, or up to a complete object that ends it and was written into a torn record.
//
// That the object is a record, and not a value inside the torn one, is proved by
// the syntax error: a nested value would have been accepted. So the torn record
// ended at or before the error. Either the error is the first byte of the object,
// or the record was torn inside a string, and the object's first quote closed it;
// no string could hold the bare quotes of the object.
func splice(seg []byte) int {
	var syntax *json.SyntaxError
	var v json.RawMessage
	if seg[0] != '{' || !errors.As(json.Unmarshal(seg, &v), &syntax) {
		return len(seg)
	}
	text := trim(seg)
	bad := int(syntax.Offset) - 1
	if bad >= len(seg)-1 {
		return len(seg) // all of it was accepted and more was expected: no proof
	}
	for i := min(bad, len(text)-1); i > 0 && i >= bad-spliceBack; i-- {
		if text[i] != '{' {
			continue
		}
		if n, gap := object(text[i:]); gap == providers.Whole && n == len(text)-i {
			return i
		}
	}
	return len(seg)
}

// trim takes the blanks of JSON off both ends; a carriage return is one.
func trim(b []byte) []byte { return bytes.Trim(b, " \t\r") }

// blank is the first place at or after i that is not blank.
func blank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// run counts the NUL bytes that b starts with.
func run(b []byte) int {
	n := 0
	for n < len(b) && b[n] == 0 {
		n++
	}
	return n
}

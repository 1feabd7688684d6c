package observer

import (
	"fmt"
	"time"

	"steno/observer/tail"
	"steno/providers"
)

// lines is a JSONL file as a cursor.
type lines struct{ *tail.File }

func (l lines) MarkAt(off int64) ([]byte, error) {
	m, err := l.File.MarkAt(off)
	if err != nil {
		return nil, err
	}
	return m.MarshalBinary()
}

// cursor goes on at a mark of the artifact, or begins when it is nil. What it
// gives is of the framing of the artifact. It does no I/O.
func cursor(a providers.Artifact, p providers.Provider, mark []byte, stats *tail.Stats) (providers.Cursor, error) {
	switch a.Framing {
	case providers.Document:
		d, err := tail.NewDocument(a.Path, mark)
		if err != nil {
			return nil, err
		}
		d.Stats = stats
		return d, nil
	case providers.Rows:
		r, err := rowReader(p)
		if err != nil {
			return nil, err
		}
		return r.Cursor(a, mark)
	}
	var m tail.Mark
	if mark != nil {
		if err := m.UnmarshalBinary(mark); err != nil {
			return nil, err
		}
	}
	f := tail.New(a.Path, m)
	f.Stats = stats
	return lines{f}, nil
}

// markAtEnd is the mark of an artifact's end, or of the last record that ended
// at or before limit when that is not negative.
func markAtEnd(a providers.Artifact, p providers.Provider, limit int64) ([]byte, error) {
	switch a.Framing {
	case providers.Document:
		return tail.DocumentAtEnd(a.Path)
	case providers.Rows:
		r, err := rowReader(p)
		if err != nil {
			return nil, err
		}
		return r.AtEnd(a, limit)
	}
	m, err := tail.AtEnd(a.Path, limit)
	if err != nil {
		return nil, err
	}
	return m.MarshalBinary()
}

// backward gives the records before a mark.
func backward(a providers.Artifact, p providers.Provider, mark []byte) (providers.Backward, error) {
	switch a.Framing {
	case providers.Document:
		return tail.DocumentBack(a.Path, mark)
	case providers.Rows:
		r, err := rowReader(p)
		if err != nil {
			return nil, err
		}
		return r.Back(a, mark, lookBack)
	}
	var m tail.Mark
	if err := m.UnmarshalBinary(mark); err != nil {
		return nil, err
	}
	b, err := tail.Back(a.Path, m)
	if err != nil {
		return nil, err
	}
	b.Limit = lookBack
	return b, nil
}

// bornAt is when an artifact came to be; zero when nothing tells.
func bornAt(a providers.Artifact, p providers.Provider) (time.Time, error) {
	if a.Framing == providers.Rows {
		r, err := rowReader(p)
		if err != nil {
			return time.Time{}, err
		}
		return r.Born(a)
	}
	info, err := tail.Stat(a.Path)
	return info.Born, err
}

// length is where the artifact ends now, as an offset of its framing.
func length(a providers.Artifact, p providers.Provider) (int64, error) {
	if a.Framing == providers.Lines {
		info, err := tail.Stat(a.Path)
		return info.Size, err
	}
	mark, err := markAtEnd(a, p, -1)
	if err != nil {
		return 0, err
	}
	c, err := cursor(a, p, mark, nil)
	if err != nil {
		return 0, err
	}
	return c.Offset(), nil
}

// firstRecord is what Describe is given of an artifact; nil while it is not
// there.
func firstRecord(a providers.Artifact) ([]byte, error) {
	if a.Framing == providers.Document {
		return tail.WholeDocument(a.Path)
	}
	return tail.First(a.Path, providers.MaxRecord)
}

func rowReader(p providers.Provider) (providers.RowReader, error) {
	r, ok := p.(providers.RowReader)
	if !ok {
		return nil, fmt.Errorf("provider %s reads no rows", p.ID())
	}
	return r, nil
}

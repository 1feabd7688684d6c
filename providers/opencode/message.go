package opencode

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// infoOf reads what a message's row says.
func infoOf(data []byte) info {
	var i info
	if err := json.Unmarshal(data, &i); err != nil {
		if _, ok := err.(*json.UnmarshalTypeError); !ok {
			return info{}
		}
	}
	return i
}

// event is the message as an event would tell it: as it began, or as it is.
// What came later than the beginning is left out then: finish, error, the time
// of completion, a user's summary.
func (m *message) event(session string, began bool) ([]byte, int64) {
	if m.info.Role == "" {
		return m.data, m.size // a gap: too long, or no object
	}
	body := m.data
	if began {
		type times struct {
			Created float64 `json:"created"`
		}
		short := struct {
			Role    string `json:"role"`
			Parent  string `json:"parentID,omitempty"`
			Summary flag   `json:"summary,omitempty"`
			Time    times  `json:"time"`
		}{m.info.Role, m.info.Parent, m.info.Summary, times{m.info.Time.Created}}
		b, err := json.Marshal(short)
		if err != nil {
			return nil, 0
		}
		body = b
	}
	out := fmt.Appendf(nil, `{"sessionID":%q,"info":%s}`, session, join(quoted("id", m.ID), body))
	return out, int64(len(out))
}

func quoted(name, value string) string {
	return `"` + name + `":` + strconv.QuoteToASCII(value) + `,`
}

// join puts members before those of an object.
func join(members string, object []byte) []byte {
	at := slices.Index(object, '{') + 1
	rest := object[at:]
	if empty(rest) {
		members = members[:len(members)-1]
	}
	return append([]byte("{"+members), rest...)
}

func empty(rest []byte) bool {
	for _, c := range rest {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '}'
		}
	}
	return true
}

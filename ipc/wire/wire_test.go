package wire

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// Instants are written in UTC with a Z and without needless digits, and read
// from any offset.
func TestTime(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`"2027-01-02T03:04:05Z"`, `"2027-01-02T03:04:05Z"`},
		{`"2027-01-02T03:04:05.120Z"`, `"2027-01-02T03:04:05.12Z"`},
		{`"2027-01-02T03:04:05.000000001Z"`, `"2027-01-02T03:04:05.000000001Z"`},
		{`"2027-01-02T05:04:05+02:00"`, `"2027-01-02T03:04:05Z"`},
		{`"2026-12-31T20:00:00-05:00"`, `"2027-01-01T01:00:00Z"`},
	} {
		var v Time
		if err := json.Unmarshal([]byte(tt.in), &v); err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if got, err := json.Marshal(v); err != nil || string(got) != tt.want {
			t.Errorf("%s is written as %s, %v, want %s", tt.in, got, err, tt.want)
		}
	}
	for _, bad := range []string{`""`, `"yesterday"`, `12`, `"2027-01-02"`, `{}`} {
		if err := json.Unmarshal([]byte(bad), new(Time)); err == nil {
			t.Errorf("%s is an instant", bad)
		}
	}
	zone := time.FixedZone("", 3600)
	if got, _ := json.Marshal(At(time.Date(2027, 1, 2, 0, 30, 0, 0, zone))); string(got) != `"2027-01-01T23:30:00Z"` {
		t.Errorf("At = %s", got)
	}
}

// Every key of an event is written, null when it is unused (D3); the keys of a
// cut text are not, unless it was cut.
func TestEventKeys(t *testing.T) {
	b, err := json.Marshal(Event{})
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(b, &keys); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"sequence", "event_id", "kind", "agent_id", "incarnation_id", "observed_at", "turn_id", "lifecycle",
		"reason", "turn_state", "text", "outcome", "recoverable", "detail", "approval", "input_sha256",
	}
	if len(keys) != len(want) {
		t.Errorf("event = %s", b)
	}
	for i, k := range want {
		v, ok := keys[k]
		if !ok || i >= 6 && string(v) != "null" {
			t.Errorf("%s = %s", k, v)
		}
	}
}

func TestVariant(t *testing.T) {
	var seen []string
	for name := range variants {
		v := Variant(name)
		if v == "" || slices.Contains(seen, v) {
			t.Errorf("variant name %q of %s", v, name)
		}
		seen = append(seen, v)
	}
	if got := Variant("abacus"); got != "Unknown" {
		t.Errorf("Variant of no name = %s", got)
	}
}

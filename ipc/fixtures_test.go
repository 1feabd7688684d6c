package ipc

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"steno/ipc/wire"
)

const fixtureFile = "../testdata/agent-api/v1/golden-fixtures.json"

func fixtures(t testing.TB) map[string]json.RawMessage {
	t.Helper()
	b, err := os.ReadFile(fixtureFile)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func fixture[T any](t testing.TB, name string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(fixtures(t)[name], &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// The objects of the fixture file that exist only there.
type (
	profile struct {
		wire.Capabilities
		Availability string `json:"availability"`
	}
	example struct {
		wire.Page
		Availability string `json:"availability"`
	}
	retention struct {
		Availability string `json:"availability"`
		Mode         string `json:"mode"`
		Oldest       uint64 `json:"oldest_available_sequence"`
		Latest       uint64 `json:"latest_sequence"`
		Gap          string `json:"gap_behavior"`
		Protection   string `json:"durable_consumer_cursor_protection"`
	}
	rpcError struct {
		Code int `json:"code"`
		Data struct {
			Code Code `json:"code"`
		} `json:"data"`
	}
)

// shapes says which object each fixture is.
var shapes = map[string]any{
	"fixture_schema":                 "",
	"contract_schema":                "",
	"current_capabilities":           wire.Capabilities{},
	"event_stream_capabilities":      profile{},
	"catalog":                        wire.Catalog{},
	"admission_receipts":             map[string]wire.Receipt{},
	"event_page":                     example{},
	"lifecycle_page":                 example{},
	"policy_aborted_turn_final":      wire.Event{},
	"capacity_aborted_turn_final":    wire.Event{},
	"cursor_too_old":                 wire.Page{},
	"retention":                      retention{},
	"classified_errors":              []map[string]any{},
	"approval_page":                  wire.Page{},
	"empty_page":                     wire.Page{},
	"empty_log_page":                 wire.Page{},
	"byte_cut_page":                  wire.Page{},
	"filtered_page":                  wire.Page{},
	"quiet_filtered_page":            wire.Page{},
	"future_cursor":                  wire.Page{},
	"failed_turn_finals":             []wire.Event{},
	"interrupted_turn_final":         wire.Event{},
	"silent_turn_final":              wire.Event{},
	"provider_error_failure":         wire.Event{},
	"observer_failure_without_turn":  wire.Event{},
	"lifecycle_reasons_page":         wire.Page{},
	"unconfirmed_and_exited_catalog": wire.Catalog{},
	"empty_catalog":                  wire.Catalog{},
	"caller":                         wire.Caller{},
	"caller_by_codex_thread":         wire.Caller{},
	"further_receipts":               map[string]wire.Receipt{},
	"return_requests":                []wire.AgentRequest{},
	"approval_resolution":            wire.Resolution{},
	"agent_list":                     []wire.AgentListEntry{},
	"unknown_fields_page":            wire.Page{},
	"unknown_event_kind_page":        wire.Page{},
	"incompatible_capabilities":      wire.Capabilities{},
	"incompatible_page":              wire.Page{},
	"request_errors":                 []rpcError{},
	"truncated_text_page":            wire.Page{},
}

// generic decodes JSON without any type of ours and without losing a digit.
func generic(t testing.TB, b []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%.80s: %v", b, err)
	}
	return v
}

// Each object reads every key of its fixture and writes exactly them.
func TestFixturesRoundTrip(t *testing.T) {
	fix := fixtures(t)
	for name, shape := range shapes {
		if fix[name] == nil {
			t.Errorf("no fixture %s", name)
			continue
		}
		v := reflect.New(reflect.TypeOf(shape))
		dec := json.NewDecoder(bytes.NewReader(fix[name]))
		if name == "unknown_fields_page" {
			continue // see TestFixturesUnknown
		}
		dec.DisallowUnknownFields()
		if err := dec.Decode(v.Interface()); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		out, err := encode(v.Interface())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, want := generic(t, out), generic(t, fix[name]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is written as\n%.2000s", name, out)
		}
	}
	for name := range fix {
		if _, ok := shapes[name]; !ok {
			t.Errorf("fixture %s is not tested", name)
		}
	}
	n := 0
	for name, e := range fixtureEvents(t) {
		n++
		dec := json.NewDecoder(bytes.NewReader(e.raw))
		dec.DisallowUnknownFields()
		var ev wire.Event
		if err := dec.Decode(&ev); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		out, err := encode(ev)
		if err != nil || !reflect.DeepEqual(generic(t, out), generic(t, e.raw)) {
			t.Errorf("%s is written as %v\n%.2000s", name, err, out)
		}
	}
	if n < 40 {
		t.Errorf("only %d events in the fixtures", n)
	}
}

type fixtureEvent struct {
	raw json.RawMessage
	wire.Event
}

// fixtureEvents are the events of all fixtures that a reader of version 1
// accepts, by name.
func fixtureEvents(t testing.TB) map[string]fixtureEvent {
	out := map[string]fixtureEvent{}
	add := func(name string, raws ...json.RawMessage) {
		for _, raw := range raws {
			e := fixtureEvent{raw: raw}
			if err := json.Unmarshal(raw, &e.Event); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			out[name+"/"+e.EventID[:8]] = e
		}
	}
	fix := fixtures(t)
	for name, shape := range shapes {
		switch shape.(type) {
		case wire.Page, example:
			if name != "unknown_event_kind_page" && name != "unknown_fields_page" {
				add(name, fixture[wire.Page](t, name).Events...)
			}
		case wire.Event:
			add(name, fix[name])
		case []wire.Event:
			add(name, fixture[[]json.RawMessage](t, name)...)
		}
	}
	return out
}

func TestFixturePages(t *testing.T) {
	for name, shape := range shapes {
		switch shape.(type) {
		case wire.Page, example:
		default:
			continue
		}
		p := fixture[wire.Page](t, name)
		err := CheckPage(p, p.RequestedAfterSequence)
		switch name {
		case "unknown_event_kind_page":
			if !errors.Is(err, ErrUnknownKind) {
				t.Errorf("%s: CheckPage = %v, want ErrUnknownKind", name, err)
			}
		case "incompatible_page":
			if !errors.Is(err, ErrIncompatible) {
				t.Errorf("%s: CheckPage = %v, want ErrIncompatible", name, err)
			}
		default:
			if err != nil {
				t.Errorf("%s: CheckPage = %v", name, err)
			}
		}
		if CheckPage(p, p.RequestedAfterSequence+1) == nil {
			t.Errorf("%s: another cursor is accepted", name)
		}
		filtered := strings.Contains(name, "filtered")
		if n := len(p.Events); n > 0 && !filtered {
			var last head
			if err := json.Unmarshal(p.Events[n-1], &last); err != nil {
				t.Fatal(err)
			}
			if *p.NextAfterSequence != last.Sequence {
				t.Errorf("%s: next cursor %d, last event %d", name, *p.NextAfterSequence, last.Sequence)
			}
		}
		// A page without events is at the head, or the cursor would not move.
		if len(p.Events) == 0 && p.Status == wire.OK && *p.NextAfterSequence != p.LatestSequence && name != "incompatible_page" {
			t.Errorf("%s: an empty page below the head", name)
		}
	}

	retained := fixture[retention](t, "retention")
	gap := fixture[wire.Page](t, "cursor_too_old")
	if gap.RequestedAfterSequence+1 >= gap.OldestAvailableSequence {
		t.Error("cursor_too_old: its cursor is not too old")
	}
	future := fixture[wire.Page](t, "future_cursor")
	if future.RequestedAfterSequence <= future.LatestSequence {
		t.Error("future_cursor: its cursor is not beyond the head")
	}
	if retained.Mode != "bounded" || retained.Gap != wire.CursorTooOld || retained.Oldest > retained.Latest {
		t.Errorf("retention = %+v", retained)
	}
	cut := fixture[wire.Page](t, "byte_cut_page")
	if *cut.NextAfterSequence >= cut.LatestSequence {
		t.Error("byte_cut_page: nothing was cut")
	}

	// What the consumers' own tests of such a file ask for.
	page, life := fixture[example](t, "event_page"), fixture[example](t, "lifecycle_page")
	cat := fixture[wire.Catalog](t, "catalog")
	if page.Availability != "live_example" || life.Availability != "live_example" {
		t.Error("a page is not a live_example")
	}
	var first, later head
	if err := errors.Join(json.Unmarshal(page.Events[0], &first), json.Unmarshal(life.Events[0], &later)); err != nil {
		t.Fatal(err)
	}
	if cat.AsOf >= first.Sequence || later.Sequence <= *page.NextAfterSequence {
		t.Error("catalog, event_page and lifecycle_page are not in order")
	}
	kinds := map[string]bool{}
	for _, raw := range page.Events {
		var e wire.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		kinds[e.Kind] = true
		if e.Kind != wire.AgentLifecycle && e.TurnID == nil {
			t.Errorf("event_page: %s without a turn", e.Kind)
		}
	}
	if len(kinds) != 7 || kinds[wire.ApprovalRequested] {
		t.Errorf("event_page has kinds %v", kinds)
	}
}

// Every event of the fixtures keeps the rules of its kind, and every kind and
// every reason has one.
func TestFixtureEvents(t *testing.T) {
	seen := map[string]bool{}
	for name, e := range fixtureEvents(t) {
		seen[e.Kind] = true
		if e.Reason != nil {
			seen[e.Kind+" "+*e.Reason] = true
		}
		if why := brokenRule(e.Event); why != "" {
			t.Errorf("%s: %s", name, why)
		}
		if a := e.Approval; a != nil {
			seen[a.Kind] = true
		}
	}
	want := slices.Clone(wire.Kinds[:])
	for _, r := range []string{wire.ProcessExited, wire.IncarnationReplaced, wire.MuxRestarted, "metadata_cleared"} {
		want = append(want, wire.AgentLifecycle+" "+r)
	}
	for _, r := range []string{"policy_blocked", "context_limit", "usage_limit", "rate_limited", "model_at_capacity",
		"provider_unavailable", "authentication_failed", "invalid_request", "sandbox_error", "provider_error", "no_reply"} {
		want = append(want, wire.TurnFinal+" "+r)
	}
	want = append(want, wire.CommandApproval, wire.UserQuestion, wire.UserQuestionForm)
	for _, w := range want {
		if !seen[w] {
			t.Errorf("no fixture of %s", w)
		}
	}
}

// brokenRule says which rule of the contract an event breaks, "" for none.
func brokenRule(e wire.Event) string {
	has := func(p *string) bool { return p != nil && *p != "" }
	only := func(set ...bool) bool { return !slices.Contains(set, true) }
	switch {
	case e.Sequence == 0 || len(e.EventID) != 64 || e.AgentID == "" || e.IncarnationID == "" || e.ObservedAt.IsZero():
		return "common fields"
	case e.Approval != nil && e.Kind != wire.ApprovalRequested:
		return "approval on another kind"
	case e.InputSHA256 != nil && e.Kind != wire.TurnStarted:
		return "input hash on another kind"
	case e.Recoverable != nil && e.Kind != wire.ObserverFailure:
		return "recoverable on another kind"
	case e.Kind != wire.AgentLifecycle && e.Kind != wire.ObserverFailure && !has(e.TurnID):
		return "no turn"
	}
	if e.Text != nil && *e.Text != strings.TrimSpace(*e.Text) {
		return "text is not trimmed"
	}
	switch e.Kind {
	case wire.AgentLifecycle:
		if !has(e.Lifecycle) || (*e.Lifecycle == wire.Available) == has(e.Reason) || !only(e.TurnID != nil, e.Text != nil) {
			return "lifecycle and reason"
		}
	case wire.TurnStateChanged:
		if !has(e.TurnState) || *e.TurnState != wire.WaitingOnAgent && *e.TurnState != wire.WaitingOnUser {
			return "turn state"
		}
	case wire.Plan, wire.AssistantMessage:
		if !has(e.Text) {
			return "no text"
		}
	case wire.ObserverFailure:
		if e.Recoverable == nil || !*e.Recoverable || !has(e.Detail) {
			return "failure without detail"
		}
	case wire.TurnFinal:
		switch {
		case !has(e.Outcome):
			return "no outcome"
		case *e.Outcome == wire.Completed && !only(e.Reason != nil, e.Detail != nil):
			return "completed with a reason"
		case *e.Outcome == wire.Aborted && (e.Text != nil || has(e.Reason) != has(e.Detail)):
			return "aborted: text, or a reason without detail"
		}
	case wire.ApprovalRequested:
		return brokenApproval(e)
	}
	if e.TextTruncated != (e.TextBytes > 0) {
		return "truncation marks"
	}
	if e.TextTruncated && (len(*e.Text) > wire.MaxText || len(*e.Text) < wire.MaxText-utf8.UTFMax+1 ||
		e.TextBytes <= int64(len(*e.Text)) || !utf8.ValidString(*e.Text)) {
		return "cut of the text"
	}
	return ""
}

func brokenApproval(e wire.Event) string {
	a := e.Approval
	if a == nil || a.Schema != wire.SchemaApproval || a.AgentID != e.AgentID || a.IncarnationID != e.IncarnationID ||
		a.TurnID != *e.TurnID || a.ItemID == "" {
		return "identity of the approval"
	}
	if len(a.RequestID) != 24 || strings.Trim(a.RequestID, "0123456789abcdef") != "" {
		return "request id"
	}
	if (len(a.Choices) == 0) != (a.Kind == wire.UserQuestionForm) {
		return "choices of the approval"
	}
	choices := slices.Clone(a.Choices)
	for i, q := range a.Questions {
		if q.Index != i || q.Question == "" {
			return "question"
		}
		choices = append(choices, q.Options...)
	}
	for _, c := range choices {
		if c.ID == "" || len(c.ID) > wire.MaxChoiceID || strings.Contains(c.ID, ":") {
			return "choice id"
		}
	}
	return ""
}

func TestFixtureLifecycle(t *testing.T) {
	p := fixture[wire.Page](t, "lifecycle_reasons_page")
	state := map[string]string{} // of an incarnation
	gone := map[string]bool{}    // for ever
	for _, raw := range p.Events {
		var e wire.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		if gone[e.IncarnationID] {
			t.Errorf("event %d: the incarnation is gone", e.Sequence)
		}
		if state[e.IncarnationID] == *e.Lifecycle {
			t.Errorf("event %d: %s twice", e.Sequence, *e.Lifecycle)
		}
		state[e.IncarnationID] = *e.Lifecycle
		if e.Reason != nil && *e.Reason != wire.MuxRestarted {
			gone[e.IncarnationID] = true
		}
	}
}

func TestFixtureReceipts(t *testing.T) {
	receipts := fixture[map[string]wire.Receipt](t, "admission_receipts")
	if len(receipts) != 5 { // a consumer refuses a name that it does not know
		t.Errorf("%d admission receipts, want 5", len(receipts))
	}
	errs := map[string]map[string]any{}
	for _, e := range fixture[[]map[string]any](t, "classified_errors") {
		errs[e["operation"].(string)+" "+e["code"].(string)] = e
	}
	for name, r := range fixture[map[string]wire.Receipt](t, "further_receipts") {
		receipts[name] = r
	}
	for name, r := range receipts {
		if r.Status != name && name != "accepted_with_return" {
			t.Errorf("%s has status %s", name, r.Status)
		}
		var definitive, written any = true, false
		switch r.Status {
		case wire.Accepted:
			written = true
		case wire.Indeterminate:
			definitive, written = false, nil
		}
		if r.Definitive != definitive || (r.PromptWritten == nil) != (written == nil) ||
			r.PromptWritten != nil && *r.PromptWritten != written {
			t.Errorf("%s: definitive %v, written %v", name, r.Definitive, r.PromptWritten)
		}
		if (r.Request != nil) != (r.Status == wire.Accepted && r.ReturnFinal) {
			t.Errorf("%s: return request %v", name, r.Request)
		}
		if isUUID(r.RequestID) == (r.Status == wire.Invalid) {
			t.Errorf("%s: request id %s", name, r.RequestID)
		}
		if r.Status == wire.Accepted {
			continue
		}
		e := errs["admit_prompt "+r.Status]
		if e == nil || e["definitive"] != definitive || e["prompt_written"] != written {
			t.Errorf("classified error %s = %v", r.Status, e)
		}
	}
	for _, want := range []string{"read_events cursor_too_old", "read_events unknown_event_kind", "negotiate incompatible_major"} {
		if errs[want] == nil {
			t.Errorf("no classified error %s", want)
		}
	}

	var last uint64
	for _, r := range fixture[[]wire.AgentRequest](t, "return_requests") {
		if r.TerminalEventSequence == nil || *r.TerminalEventSequence <= last || !isUUID(r.RequestID) {
			t.Errorf("return request %s out of order", r.RequestID)
			continue
		}
		last = *r.TerminalEventSequence
		if (r.FinalMessage != nil) != (r.State == wire.StateCompleted) || (r.Detail == nil) != (r.State == wire.StateCompleted) {
			t.Errorf("return request %s: final and detail of %s", r.RequestID, r.State)
		}
	}
}

func TestFixtureCatalogs(t *testing.T) {
	for _, name := range []string{"catalog", "unconfirmed_and_exited_catalog", "empty_catalog"} {
		cat := fixture[wire.Catalog](t, name)
		ids, panes := map[string]bool{}, map[uint64]bool{}
		for _, a := range cat.Agents {
			if ids[a.AgentID] || panes[a.PaneID] {
				t.Errorf("%s: agent %s or its pane twice", name, a.AgentID)
			}
			ids[a.AgentID], panes[a.PaneID] = true, true
			if a.Alive == (a.Status == wire.Exited) {
				t.Errorf("%s: alive %v with status %s", name, a.Alive, a.Status)
			}
		}
	}
	var errs []rpcError = fixture[[]rpcError](t, "request_errors")
	if len(errs) != len(numbers) {
		t.Errorf("%d request errors, want %d", len(errs), len(numbers))
	}
	for _, e := range errs {
		if numbers[e.Data.Code] != e.Code {
			t.Errorf("%s has number %d, want %d", e.Data.Code, e.Code, numbers[e.Data.Code])
		}
	}
}

// A reader goes on over keys it does not know, on the page and on an event.
func TestFixturesUnknown(t *testing.T) {
	p := fixture[wire.Page](t, "unknown_fields_page")
	if err := CheckPage(p, p.RequestedAfterSequence); err != nil {
		t.Errorf("CheckPage = %v", err)
	}
	if got := texts(t, p); !slices.Equal(got, []string{"Still readable."}) {
		t.Errorf("texts = %q", got)
	}
	if !bytes.Contains(fixtures(t)["unknown_fields_page"], []byte(`"later_addition"`)) {
		t.Error("the fixture has no unknown key")
	}
}

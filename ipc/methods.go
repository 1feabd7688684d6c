package ipc

import (
	"context"
	"fmt"
	"os"
	"time"

	"steno/ipc/wire"
)

// method answers one request with a whole line. The release function, when
// there is one, is called once the line was handed on.
type method func(*session, context.Context, *request) (line []byte, release func(), err error)

// methods are all requests that are served.
var methods = map[string]method{
	"Hello":           simple(hello),
	"Capabilities":    simple(capabilities),
	"Catalog":         simple(catalog),
	"ReadAgentEvents": readEvents,
	"ListAgents":      simple(listAgents),
	"ListPanes":       simple(listPanes),
	"Status":          simple(status),
	"Explain":         simple(explain),
	"AdmitPrompt":     simple(admitPrompt),
	"ReadRequests":    simple(readRequests),
}

// liveFor is how long the observer may work on one question.
const liveFor = 10 * time.Second

// simple makes a method of a function that returns its result.
func simple(f func(*session, context.Context, *request) (any, error)) method {
	return func(c *session, life context.Context, req *request) ([]byte, func(), error) {
		result, err := f(c, life, req)
		if err != nil {
			return nil, nil, err
		}
		release, err := c.hold(life)
		if err != nil {
			return nil, nil, err
		}
		line, err := encodeResult(req.id, result)
		if err == nil && len(line) > maxAnswer {
			err = fmt.Errorf("answer of %d bytes", len(line))
		}
		return line, release, err
	}
}

func hello(c *session, _ context.Context, req *request) (any, error) {
	var p wire.HelloParams
	if err := req.decode(&p); err != nil {
		return nil, err
	}
	if len(p.Client) > wire.MaxClient {
		return nil, invalid("client has at most 128 bytes")
	}
	if p.APIMajor != 0 && p.APIMajor != wire.Major {
		return nil, &Error{CodeMajor, fmt.Sprintf("this daemon speaks major version %d of the agent API", wire.Major)}
	}
	return wire.Hello{
		Schema: wire.SchemaAPI, APIMajor: wire.Major,
		Service: "steno", Version: c.s.o.Version,
	}, nil
}

func capabilities(c *session, _ context.Context, _ *request) (any, error) {
	caps := wire.Capabilities{
		Schema: wire.SchemaAPI, APIMajor: wire.Major,
		Capabilities: []string{wire.CapCatalog, wire.CapAdmission, wire.CapReturnStream},
	}
	if c.s.o.Store.Working() {
		caps.Capabilities = append(caps.Capabilities, wire.CapEventStream)
	}
	return caps, nil
}

func catalog(c *session, life context.Context, _ *request) (any, error) {
	asOf, agents, err := c.s.o.Store.Agents(life)
	if err != nil {
		return nil, &storeError{err}
	}
	cat := wire.Catalog{Schema: wire.SchemaAPI, AsOf: uint64(asOf), Agents: []wire.CatalogEntry{}}
	for _, a := range listed(agents, c.s.o.Now()) {
		cat.Agents = append(cat.Agents, entryOf(a))
	}
	return cat, nil
}

func listAgents(c *session, life context.Context, _ *request) (any, error) {
	_, agents, err := c.s.o.Store.Agents(life)
	if err != nil {
		return nil, &storeError{err}
	}
	ctx, cancel := c.live(life)
	defer cancel()
	panes, err := c.s.o.Live.Panes(ctx)
	if err != nil {
		// The agents are known without their multiplexer; Status says what
		// is wrong with that.
		c.s.report("ListAgents", err)
	}
	at := make(map[uint64]wire.Pane, len(panes))
	for _, p := range panes {
		at[p.PaneID] = p
	}
	list := wire.AgentList{Agents: []wire.AgentListEntry{}}
	for _, a := range listed(agents, c.s.o.Now()) {
		list.Agents = append(list.Agents, wideOf(a, at[a.PaneID]))
	}
	return list, nil
}

func listPanes(c *session, life context.Context, _ *request) (any, error) {
	ctx, cancel := c.live(life)
	defer cancel()
	panes, err := c.s.o.Live.Panes(ctx)
	if err != nil {
		return nil, err
	}
	if panes == nil {
		panes = []wire.Pane{}
	}
	return wire.PaneList{Panes: panes}, nil
}

func explain(c *session, life context.Context, req *request) (any, error) {
	var p wire.ExplainParams
	if err := req.decode(&p); err != nil {
		return nil, err
	}
	if p.Target == "" || len(p.Target) > wire.MaxName {
		return nil, invalid("target must be a pane id, an agent id or a name")
	}
	ctx, cancel := c.live(life)
	defer cancel()
	ex, err := c.s.o.Live.Explain(ctx, p.Target)
	if ex.Evidence == nil {
		ex.Evidence = []wire.EvidenceRow{}
	}
	return ex, err
}

func status(c *session, life context.Context, _ *request) (any, error) {
	st := c.s.o.Live.Status()
	st.Version, st.PID, st.Clients = c.s.o.Version, os.Getpid(), c.s.clients()
	if st.Mux == nil {
		st.Mux = []wire.MuxStatus{}
	}
	if st.Providers == nil {
		st.Providers = []wire.ProviderStatus{}
	}
	stats, err := c.s.o.Store.Stats(life)
	if err == nil {
		st.Store = wire.StoreStatus{
			Oldest: uint64(stats.Oldest), Latest: uint64(stats.Latest),
			Events: stats.Events, Bytes: stats.Bytes,
			RetainEvents: stats.RetainEvents, RetainBytes: stats.RetainBytes,
		}
	}
	st.Store.Working = c.s.o.Store.Working() && err == nil
	if err == nil {
		err = c.s.o.Store.Err()
	}
	if err != nil {
		st.Store.Error = err.Error()
	}
	return st, nil
}

func readRequests(_ *session, _ context.Context, req *request) (any, error) {
	var p struct {
		After uint64 `json:"after_terminal_sequence"`
		Limit *int64 `json:"limit"`
	}
	if err := req.decode(&p); err != nil {
		return nil, err
	}
	if p.Limit != nil && (*p.Limit < 1 || *p.Limit > wire.MaxRequests) {
		return nil, invalid("limit must be from 1 to 100")
	}
	// No request is ever accepted, so none has ended.
	return wire.Requests{Requests: []wire.AgentRequest{}}, nil
}

// hold waits for the right to have a large answer in memory.
func (c *session) hold(life context.Context) (release func(), err error) {
	select {
	case c.big <- struct{}{}:
		return func() { <-c.big }, nil
	case <-life.Done():
		return nil, life.Err()
	}
}

// live is the context of a question to the observer: it ends with the
// connection, with the server, and after liveFor.
func (c *session) live(life context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(life, liveFor)
	stop := context.AfterFunc(c.server, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

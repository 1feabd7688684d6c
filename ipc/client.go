package ipc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"steno/ipc/wire"
)

const (
	// maxAnswer is the longest answer line that a client reads, in bytes.
	maxAnswer = 8 << 20
	// sendTimeout is how long a daemon may take to accept one request line.
	sendTimeout = 5 * time.Second
)

// Client is one connection to the daemon. It is safe for concurrent use; the
// daemon works on at most 16 requests of a connection at a time.
//
// Every call ends when its context does. The daemon goes on with an abandoned
// long poll until its wait ends or the client is closed.
type Client struct {
	conn  net.Conn
	write chan struct{} // a mutex of capacity 1, so that a context can end the wait for it
	done  chan struct{} // closed when the reader has ended

	mu      sync.Mutex // guards the fields below
	last    uint64     // id of the latest request
	pending map[uint64]chan answer
	err     error // why the connection is of no more use
}

// answer is a response, or why there is none.
type answer struct {
	result json.RawMessage
	err    error
}

// response is one line of the daemon.
type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    struct {
			Code Code `json:"code"`
		} `json:"data"`
	} `json:"error"`
}

// Dial connects to the socket at path and makes sure that the daemon speaks
// our major version. The error is ErrUnreachable when nobody serves path,
// ErrIncompatible, or an *Error when the daemon refuses the connection.
func Dial(ctx context.Context, path string) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	c := &Client{
		conn:    conn,
		write:   make(chan struct{}, 1),
		done:    make(chan struct{}),
		pending: make(map[uint64]chan answer),
	}
	// Owned by the client, joined in Close.
	go c.read()
	hello, err := c.Hello(ctx)
	if err == nil && (hello.APIMajor != wire.Major || hello.Schema != wire.SchemaAPI) {
		err = fmt.Errorf("%w: the daemon speaks %q, major %d", ErrIncompatible, hello.Schema, hello.APIMajor)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the connection and every call in flight. It may be called twice.
func (c *Client) Close() error {
	c.fail(net.ErrClosed)
	err := c.conn.Close()
	<-c.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Hello greets the daemon.
func (c *Client) Hello(ctx context.Context) (wire.Hello, error) {
	return call[wire.Hello](ctx, c, "Hello", wire.HelloParams{Client: "steno", APIMajor: wire.Major})
}

// Capabilities says what the daemon can do now.
func (c *Client) Capabilities(ctx context.Context) (wire.Capabilities, error) {
	caps, err := call[wire.Capabilities](ctx, c, "Capabilities", nil)
	if err == nil && (caps.APIMajor != wire.Major || caps.Schema != wire.SchemaAPI) {
		err = fmt.Errorf("%w: the daemon speaks %q, major %d", ErrIncompatible, caps.Schema, caps.APIMajor)
	}
	return caps, err
}

// Catalog is the set of agents at one moment.
func (c *Client) Catalog(ctx context.Context) (wire.Catalog, error) {
	cat, err := call[wire.Catalog](ctx, c, "Catalog", nil)
	if err == nil && cat.Schema != wire.SchemaAPI {
		err = fmt.Errorf("%w: catalog of schema %q", ErrIncompatible, cat.Schema)
	}
	return cat, err
}

// ReadEvents reads one page of events and checks it with CheckPage.
func (c *Client) ReadEvents(ctx context.Context, p wire.ReadParams) (wire.Page, error) {
	page, err := call[wire.Page](ctx, c, "ReadAgentEvents", p)
	if err == nil {
		err = CheckPage(page, p.After)
	}
	return page, err
}

// ListAgents is the wide list of agents.
func (c *Client) ListAgents(ctx context.Context) ([]wire.AgentListEntry, error) {
	l, err := call[wire.AgentList](ctx, c, "ListAgents", nil)
	return l.Agents, err
}

// Panes lists the places that agents can live in.
func (c *Client) Panes(ctx context.Context) ([]wire.Pane, error) {
	l, err := call[wire.PaneList](ctx, c, "ListPanes", nil)
	return l.Panes, err
}

// Status is the daemon's own state.
func (c *Client) Status(ctx context.Context) (wire.Status, error) {
	return call[wire.Status](ctx, c, "Status", nil)
}

// Explain says what speaks for and against the binding of a pane id, an agent
// id or a name. The code is not_found when nothing has that name.
func (c *Client) Explain(ctx context.Context, target string) (wire.Explanation, error) {
	return call[wire.Explanation](ctx, c, "Explain", wire.ExplainParams{Target: target})
}

// Admit asks to write a prompt. A refusal is a receipt, not an error.
func (c *Client) Admit(ctx context.Context, p wire.AdmitParams) (wire.Receipt, error) {
	return call[wire.Receipt](ctx, c, "AdmitPrompt", p)
}

// Requests reads the return requests that ended after a position.
func (c *Client) Requests(ctx context.Context, after uint64) ([]wire.AgentRequest, error) {
	r, err := call[wire.Requests](ctx, c, "ReadRequests", wire.RequestsParams{After: after})
	return r.Requests, err
}

// call does one request. It is a function because a method has no type
// parameter.
func call[T any](ctx context.Context, c *Client, method string, params any) (T, error) {
	var out T
	raw, err := c.roundTrip(ctx, method, params)
	if err != nil {
		return out, fmt.Errorf("%s: %w", method, err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, fmt.Errorf("%s: %w: %v", method, ErrProtocol, err)
	}
	return out, nil
}

func (c *Client) roundTrip(ctx context.Context, method string, params any) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	got := make(chan answer, 1) // the reader never blocks on a caller that left
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return nil, c.err
	}
	c.last++
	id := c.last
	c.pending[id] = got
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()

	line, err := json.Marshal(struct {
		JSONRPC string `json:"jsonrpc"`
		ID      uint64 `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{"2.0", id, method, params})
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	if len(line) > wire.MaxRequest {
		return nil, &Error{CodeTooLarge, "the request is longer than 2 MiB"}
	}
	if err := c.send(ctx, append(line, '\n')); err != nil {
		return nil, err
	}
	select {
	case a := <-got:
		return a.result, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// send writes one line. A line that was written in part ends the connection.
func (c *Client) send(ctx context.Context, line []byte) error {
	select {
	case c.write <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return c.failure()
	}
	defer func() { <-c.write }()
	c.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		c.conn.SetWriteDeadline(time.Unix(1, 0))
	})
	n, err := c.conn.Write(line)
	if !stop() {
		<-ended // or it would set the deadline of the next line
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		if n > 0 {
			c.fail(fmt.Errorf("%w: a request was broken off", ErrDisconnected))
			c.conn.Close()
		}
		return ctx.Err()
	}
	// A daemon that refuses us closes without reading. What it said first is
	// still there to be read, and says more than the broken pipe.
	c.conn.SetReadDeadline(time.Now().Add(sendTimeout))
	<-c.done
	return c.failure()
}

// read hands answers to their callers until the connection ends.
func (c *Client) read() {
	defer close(c.done)
	r := bufio.NewReaderSize(c.conn, 64<<10)
	for {
		line, err := readLine(r, maxAnswer)
		if errors.Is(err, errLong) {
			c.fail(fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, maxAnswer))
			return
		}
		if err != nil {
			c.fail(ErrDisconnected)
			return
		}
		if err := c.deliver(line); err != nil {
			c.fail(err)
			return
		}
	}
}

// deliver gives one line to the call it answers. An error without an id is
// about the connection and ends it.
func (c *Client) deliver(line []byte) error {
	var in response
	if err := json.Unmarshal(line, &in); err != nil {
		return fmt.Errorf("%w: %v", ErrProtocol, err)
	}
	if in.JSONRPC != "2.0" || (in.Error == nil) == (in.Result == nil) {
		return fmt.Errorf("%w: not a JSON-RPC 2.0 response", ErrProtocol)
	}
	a := answer{result: in.Result}
	if in.Error != nil {
		e := &Error{Code: in.Error.Data.Code, Message: in.Error.Message}
		if e.Code == "" {
			e.Code = Code("rpc_" + strconv.Itoa(in.Error.Code))
		}
		a.err = e
		if e.Code == CodeMajor {
			a.err = fmt.Errorf("%w: %s", ErrIncompatible, e.Message)
		}
	}
	id, err := strconv.ParseUint(string(in.ID), 10, 64)
	if err != nil {
		if a.err != nil {
			return a.err
		}
		return fmt.Errorf("%w: a result without our id", ErrProtocol)
	}
	c.mu.Lock()
	got := c.pending[id] // nil when the caller has left
	delete(c.pending, id)
	c.mu.Unlock()
	if got != nil {
		got <- a
	}
	return nil
}

// fail ends the connection for the first reason given.
func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	for id, got := range c.pending {
		got <- answer{err: c.err}
		delete(c.pending, id)
	}
}

func (c *Client) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

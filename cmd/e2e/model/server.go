package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	maxRequest = 64 << 20
	maxUnseen  = 64
)

// Request is what the server did for one request.
type Request struct {
	Path   string
	Script string
	Step   int // from 0
	Tools  int // that the program offered
}

// Server is a running server. Start makes one.
type Server struct {
	addr   string
	http   *http.Server
	done   chan struct{}
	held   chan struct{}
	open   chan struct{}
	nextID atomic.Int64

	mu       sync.Mutex // guards what follows
	requests []Request
	times    map[string]int // how often a step was asked for
}

// Start listens on a free port of loopback and serves until Close.
func Start() (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the programs: %w", err)
	}
	s := &Server{
		addr: l.Addr().String(), done: make(chan struct{}),
		held: make(chan struct{}, maxUnseen), open: make(chan struct{}),
		times: map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxRequest)) // an estimate will do
		writeJSON(w, http.StatusOK, object{"input_tokens": n / 4})
	})
	mux.HandleFunc("POST /v1/responses", s.responses)
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("POST /v1beta/models/{call}", s.gemini)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		model := object{"id": "scripted", "object": "model", "created": 1, "owned_by": "e2e", "context_length": 131072}
		writeJSON(w, http.StatusOK, object{"object": "list", "data": []any{model}, "models": []any{}})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.note(Request{Path: r.Method + " " + r.URL.Path})
		writeJSON(w, http.StatusNotFound, object{"type": "error", "error": object{"type": "not_found_error", "message": "not found"}})
	})
	s.http = &http.Server{Handler: mux}
	go func() { // joined in Close
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // only a broken listener
		}
	}()
	return s, nil
}

// URL is the address without a path.
func (s *Server) URL() string { return "http://" + s.addr }

// Close ends all streams and the server.
func (s *Server) Close() {
	_ = s.http.Close() // the listener is all that could fail
	<-s.done
}

// Requests lists what was asked so far, in the order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func (s *Server) note(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
}

// Held waits until one more stream stands at a hold.
func (s *Server) Held(ctx context.Context) error {
	select {
	case <-s.held:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the model to hold: %w", ctx.Err())
	}
}

// Release lets one held stream go on. It waits until there is one.
func (s *Server) Release(ctx context.Context) error {
	select {
	case s.open <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("release a held stream: %w", ctx.Err())
	}
}

// hold stands still until Release; false if the client went away.
func (s *Server) hold(ctx context.Context) bool {
	select {
	case s.held <- struct{}{}:
	default: // nobody asks for them
	}
	select {
	case <-s.open:
		return true
	case <-ctx.Done():
		return false
	}
}

// id makes an identifier like those of the real servers.
func (s *Server) id(prefix string) string {
	return fmt.Sprintf("%s_%024x", prefix, s.nextID.Add(1))
}

type object = map[string]any

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

func readJSON(w http.ResponseWriter, r *http.Request, into any) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, object{"type": "error", "error": object{"type": "invalid_request_error", "message": "unreadable request"}})
		return nil, false
	}
	return body, true
}

// stream writes server-sent events.
type stream struct {
	w http.ResponseWriter
	c *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return &stream{w, http.NewResponseController(w)}
}

// send sends an event with a name, as Anthropic and OpenAI Responses do.
func (s *stream) send(event string, v object) {
	v["type"] = event
	s.write("event: " + event + "\ndata: " + compactJSON(v))
}

// data sends an event without a name, as the others do.
func (s *stream) data(v object) { s.write("data: " + compactJSON(v)) }

// end ends a stream of chat completions.
func (s *stream) end() { s.write("data: [DONE]") }

func (s *stream) write(event string) {
	_, _ = io.WriteString(s.w, event+"\n\n") // a client that is gone ends the request's context
	_ = s.c.Flush()
}

func compactJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only maps of strings, numbers and lists
	}
	return string(b)
}

var (
	scenarioName = regexp.MustCompile(`SCENARIO:([A-Za-z0-9]+)`)
	injected     = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>|<session_context>.*?</session_context>|<current_datetime>.*?</current_datetime>|<environment_context>.*?</environment_context>|<turn_aborted>.*?</turn_aborted>|\[Request interrupted by user[^\]]*\]`)
)

// named finds the last script that a text asks for.
func named(text string) string {
	all := scenarioName.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

// own drops what the program put into a prompt.
func own(text string) string {
	return strings.TrimSpace(injected.ReplaceAllString(text, ""))
}

// say streams a text by send, and stops at each pause. It is false if the
// client went away.
func (s *Server) say(ctx context.Context, text string, send func(string)) bool {
	for i, part := range strings.Split(text, pause) {
		if i > 0 && !s.hold(ctx) {
			return false
		}
		for _, piece := range pieces(part) {
			send(piece)
		}
	}
	return true
}

// spoken is a text without its pauses.
func spoken(text string) string { return strings.ReplaceAll(text, pause, "") }

// pieces splits a text as a stream would: a few words at a time, longer ones in
// large pieces.
func pieces(s string) []string {
	n := max(40, len(s)/50)
	var out []string
	runes := []rune(s)
	for len(runes) > n {
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return append(out, string(runes))
}

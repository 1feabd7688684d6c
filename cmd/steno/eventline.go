package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"steno/ipc"
	"steno/ipc/wire"
)

// linePrinter writes one line for each event: time, agent, pane, kind, and the
// first line of its text. It asks the daemon for names that it does not know.
type linePrinter struct {
	w      io.Writer
	dial   func(context.Context) (*ipc.Client, error)
	colour bool
	width  func() int // columns, 0 = unknown
	names  map[string]agentLabel
}

type agentLabel struct{ name, harness, pane string }

// title names the agent and its program, which most names begin with.
func (l agentLabel) title() string {
	if strings.HasPrefix(l.name, l.harness) {
		return l.name
	}
	return l.name + " (" + l.harness + ")"
}

func (a *app) linePrinter(dial func(context.Context) (*ipc.Client, error)) *linePrinter {
	return &linePrinter{
		w: a.out, dial: dial, colour: a.colour(a.tty),
		width: func() int { return width(a.out) },
		names: map[string]agentLabel{},
	}
}

// page prints the events of a page.
func (p *linePrinter) page(ctx context.Context, page wire.Page) error {
	if page.Status == wire.CursorTooOld {
		_, err := fmt.Fprintf(p.w, "%s\n", paint(p.colour, yellow, fmt.Sprintf(
			"events up to %d are no longer kept; the log begins at %d",
			page.OldestAvailableSequence-1, page.OldestAvailableSequence)))
		return err
	}
	for _, raw := range page.Events {
		var e wire.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("read event: %w", err)
		}
		if _, err := io.WriteString(p.w, p.line(p.label(ctx, e), e)); err != nil {
			return fmt.Errorf("write event: %w", err)
		}
	}
	return nil
}

// label finds the names of an event's agent. An unknown agent stays with the
// head of its id: a line is worth more than its decoration.
func (p *linePrinter) label(ctx context.Context, e wire.Event) agentLabel {
	moved := e.Kind == wire.AgentLifecycle && e.Lifecycle != nil && *e.Lifecycle == wire.Available
	if l, ok := p.names[e.AgentID]; ok && !moved {
		return l
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if client, err := p.dial(ctx); err == nil {
		defer client.Close()
		p.learn(ctx, client)
	}
	l, ok := p.names[e.AgentID]
	if !ok {
		l = agentLabel{name: e.AgentID[:min(8, len(e.AgentID))], harness: "?", pane: "?"}
		p.names[e.AgentID] = l
	}
	return l
}

func (p *linePrinter) learn(ctx context.Context, client *ipc.Client) {
	catalog, err := client.Catalog(ctx)
	if err != nil {
		return
	}
	panes, err := client.Panes(ctx)
	if err != nil {
		return
	}
	labels := paneLabels(panes)
	if len(p.names) > 4096 { // a follower runs for months
		clear(p.names)
	}
	for _, e := range catalog.Agents {
		p.names[e.AgentID] = agentLabel{name: e.Name, harness: e.Harness, pane: paneLabel(labels, e.PaneID)}
	}
}

// Columns of a line: the time, the agent, the pane, the kind.
const (
	nameColumn = 22
	paneColumn = 8
	kindColumn = 17
	textStart  = len("15:04:05") + 2 + nameColumn + 1 + paneColumn + 1 + kindColumn + 1
)

// line is one event for people.
func (p *linePrinter) line(who agentLabel, e wire.Event) string {
	colour, text := describe(e)
	room := 0
	if cols := p.width(); cols > 0 {
		room = max(cols-textStart, 20)
	}
	text = firstLine(text, room)
	kind := kindWord(e)
	if text != "" {
		kind = cell(kind, kindColumn)
		text = " " + text
	}
	return paint(p.colour, dim, e.ObservedAt.Local().Format("15:04:05")) + "  " +
		cell(who.title(), nameColumn) + " " + cell(who.pane, paneColumn) + " " +
		paint(p.colour, colour, clean(kind)) + text + "\n"
}

// cell is s as one column of n characters; a longer one pushes the rest.
func cell(s string, n int) string {
	s = firstLine(s, 2*n)
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}

// kindWord is the kind, or what matters more than its name.
func kindWord(e wire.Event) string {
	switch e.Kind {
	case wire.AgentLifecycle:
		return value(e.Lifecycle)
	case wire.TurnStateChanged:
		return value(e.TurnState)
	case wire.TurnFinal:
		return "turn " + value(e.Outcome)
	}
	return strings.ReplaceAll(e.Kind, "_", " ")
}

// describe gives the colour of an event and the text it has to say.
func describe(e wire.Event) (colour, text string) {
	switch e.Kind {
	case wire.AgentLifecycle:
		if value(e.Lifecycle) == wire.Available {
			return cyan, ""
		}
		return dim, value(e.Reason)
	case wire.TurnStarted:
		return blue, ""
	case wire.TurnStateChanged:
		return dim, ""
	case wire.AssistantMessage, wire.Plan:
		return bold, value(e.Text)
	case wire.TurnFinal:
		if value(e.Outcome) == wire.Completed {
			return green, value(e.Text)
		}
		return yellow, value(e.Detail)
	case wire.ApprovalRequested:
		if e.Approval == nil {
			return yellow, ""
		}
		if t := value(e.Approval.Prompt); t != "" {
			return yellow, t
		}
		return yellow, value(e.Approval.Command)
	}
	return red, value(e.Detail)
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// paneLabels names each pane the way its multiplexer does: %3, pts/5, pid 17.
func paneLabels(panes []wire.Pane) map[uint64]string {
	out := make(map[uint64]string, len(panes))
	for _, p := range panes {
		switch {
		case p.MuxPane != "":
			out[p.PaneID] = p.MuxPane
		case p.TTYName != "":
			out[p.PaneID] = strings.TrimPrefix(p.TTYName, "/dev/")
		case p.AgentPID != 0:
			out[p.PaneID] = fmt.Sprintf("pid %d", p.AgentPID)
		}
	}
	return out
}

// paneLabel is the label of a pane, "-" for one that is gone.
func paneLabel(labels map[uint64]string, id uint64) string {
	if l := labels[id]; l != "" {
		return l
	}
	return "-"
}

package ipc

import (
	"context"

	"steno/ipc/wire"
	"steno/store"
)

// admitPrompt answers AdmitPrompt. Steno writes into no pane yet; it says so
// with a receipt that is definitive, so that nobody waits for an effect.
func admitPrompt(c *session, life context.Context, req *request) (any, error) {
	var p wire.AdmitParams
	if err := req.decode(&p); err != nil {
		return nil, err
	}
	status, detail := refusal(c, life, p)
	written := false
	r := wire.Receipt{
		Schema: wire.SchemaAPI, RequestID: p.RequestID,
		Status: status, Definitive: true, PromptWritten: &written,
		ReturnFinal: p.ReturnFinal, Detail: &detail,
	}
	if p.AgentID != "" {
		r.AgentID = &p.AgentID
	}
	if p.IncarnationID != "" {
		r.IncarnationID = &p.IncarnationID
	}
	return r, nil
}

// refusal says why a prompt is not written.
func refusal(c *session, life context.Context, p wire.AdmitParams) (status, detail string) {
	switch {
	case !isUUID(p.RequestID):
		return wire.Invalid, "the request id is not a UUID"
	case p.AgentID == "" || p.IncarnationID == "":
		return wire.Invalid, "the agent or its incarnation is not named"
	case p.Prompt == "":
		return wire.Invalid, "the prompt is empty"
	}
	_, agents, err := c.s.o.Store.Agents(life)
	if err != nil {
		c.s.report("AdmitPrompt", err)
		return wire.InternalFailure, "the event log does not work at the moment"
	}
	var found *store.Agent
	for i := range agents {
		if agents[i].ID == p.AgentID {
			found = &agents[i]
		}
	}
	switch {
	case found == nil:
		return wire.NotAvailable, "no agent has this id"
	case found.Incarnation == "":
		return wire.NotAvailable, "the agent's process is not confirmed"
	case found.Incarnation != p.IncarnationID:
		return wire.StaleIncarnation, "the agent runs as another incarnation"
	case !found.Alive:
		return wire.NotAvailable, "the agent has ended"
	}
	return wire.Unsupported, "this version of steno writes into no pane"
}

// isUUID says whether s is a UUID in its usual form of 36 characters.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F'):
			return false
		}
	}
	return true
}

package codex

import (
	"context"

	"steno/providers"
)

func logEvidence(context.Context, string, providers.Process, []providers.Session) ([]providers.Evidence, error) {
	return nil, nil
}

package claude

import (
	"testing"

	"steno/providers/providertest"
)

func TestContract(t *testing.T) {
	providertest.Run(t, Provider{}, providertest.Load(t, ID, "../../testdata/providers/claude", nil))
}

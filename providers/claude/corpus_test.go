package claude

import (
	"os"
	"strings"
	"testing"

	"steno/providers/providertest"
)

const corpus = "../../testdata/providers/claude"

func TestContract(t *testing.T) {
	providertest.Run(t, Provider{}, providertest.Load(t, ID, corpus, nil))
}

// TestGolden wants every transcript to give what a person read from it.
//
// Field list: A1 to A6, A9, B13, D2, G1 to G3, G5, G7, G9, G12 to G14.
func TestGolden(t *testing.T) {
	for _, c := range providertest.Load(t, ID, corpus, nil) {
		t.Run(c.Name, func(t *testing.T) {
			golden := strings.TrimSuffix(c.File, ".jsonl") + ".txt"
			if _, err := os.Stat(golden); err != nil {
				t.Fatalf("every transcript has a golden file: %v", err)
			}
			providertest.Golden(t, Provider{}, c, golden)
		})
	}
}

package copilot

import (
	"strings"
	"testing"

	"steno/providers/providertest"
)

const corpus = "../../testdata/providers/copilot"

func TestContract(t *testing.T) {
	providertest.Run(t, Provider{}, providertest.Load(t, ID, corpus, nil))
}

func TestGolden(t *testing.T) {
	for _, c := range providertest.Load(t, ID, corpus, nil) {
		t.Run(c.Name, func(t *testing.T) {
			providertest.Golden(t, Provider{}, c, strings.TrimSuffix(c.File, ".jsonl")+".txt")
		})
	}
}

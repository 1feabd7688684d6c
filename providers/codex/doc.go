// Package codex observes Codex CLI: its rollouts, and which process writes
// which.
package codex

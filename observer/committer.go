package observer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"steno/store"
)

// Bounds of a group commit.
const (
	groupEvents = 512
	heartbeat   = time.Second
	retryFirst  = 50 * time.Millisecond
	retryMax    = 5 * time.Second
)

// commit is one atomic step on its way to the store.
type commit struct {
	batch store.Batch
	art   *artifact // to tell the loop when it is done; nil otherwise
}

// committer is the only writer of the store. It takes what is ready, at most
// groupEvents events at once and never waiting for more, and tells the loop
// what was committed.
type committer struct {
	store *store.Store
	in    chan commit
	acks  chan []*artifact
	beat  func()
	log   zerolog.Logger
	held  *commit // taken from in, but not part of the last group
}

func (c commit) drops() bool { return len(c.batch.DropSources)+len(c.batch.DropAgents) > 0 }

// run commits until in is closed. When ctx ends, a store that does not work is
// given up after drainTime: nothing is lost, because no offset moved.
func (c *committer) run(ctx context.Context) error {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	defer close(c.acks)
	for {
		c.beat()
		if c.held != nil {
			group := []commit{*c.held}
			c.held = nil
			if err := c.commit(ctx, group); err != nil {
				return err
			}
			continue
		}
		select {
		case <-tick.C:
		case first, ok := <-c.in:
			if !ok {
				return nil
			}
			group, open := c.group(first)
			if err := c.commit(ctx, group); err != nil {
				return err
			}
			if !open {
				return nil
			}
		}
	}
}

// group collects what is ready behind the first one. A batch that drops rows
// ends its group: within one transaction the store drops first.
func (c *committer) group(first commit) ([]commit, bool) {
	group := []commit{first}
	n := len(first.batch.Events)
	for n < groupEvents && len(group) < groupEvents && !first.drops() {
		select {
		case next, ok := <-c.in:
			if !ok {
				return group, false
			}
			if next.drops() {
				c.held = &next
				return group, true
			}
			group = append(group, next)
			n += len(next.batch.Events)
		default:
			return group, true
		}
	}
	return group, true
}

// commit writes a group, again and again while the store's trouble may pass.
func (c *committer) commit(ctx context.Context, group []commit) error {
	var all store.Batch
	var arts []*artifact
	for _, g := range group {
		all.Events = append(all.Events, g.batch.Events...)
		all.Sources = append(all.Sources, g.batch.Sources...)
		all.Agents = append(all.Agents, g.batch.Agents...)
		all.Servers = append(all.Servers, g.batch.Servers...)
		all.DropSources = append(all.DropSources, g.batch.DropSources...)
		all.DropAgents = append(all.DropAgents, g.batch.DropAgents...)
		if g.art != nil {
			arts = append(arts, g.art)
		}
	}
	err := c.write(ctx, all)
	if errors.Is(err, store.ErrInvalid) {
		err = c.apart(ctx, group)
	}
	if err != nil {
		return err
	}
	if len(arts) > 0 {
		c.acks <- arts
	}
	return nil
}

// apart writes the commits of a refused group one by one. One that breaks a
// bound of the store can never be written: it is a fault of ours, which costs
// its facts but not the daemon.
func (c *committer) apart(ctx context.Context, group []commit) error {
	for _, g := range group {
		err := c.write(ctx, g.batch)
		if errors.Is(err, store.ErrInvalid) {
			c.log.Error().Err(err).Int("events", len(g.batch.Events)).Msg("facts were dropped: the store's bounds do not hold them")
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *committer) write(ctx context.Context, b store.Batch) error {
	wait := retryFirst
	var logged time.Time
	var giveUp <-chan time.Time
	done := ctx.Done()
	for try := 1; ; try++ {
		// A commit that has begun is not torn by the end of the daemon.
		_, err := c.store.Commit(context.WithoutCancel(ctx), b)
		if err == nil {
			if try > 1 {
				c.log.Info().Int("tries", try).Msg("store works again")
			}
			return nil
		}
		if !store.Temporary(err) {
			return fmt.Errorf("commit: %w", err)
		}
		if time.Since(logged) >= time.Minute {
			c.log.Error().Err(err).Int("tries", try).Msg("store does not take events; trying again")
			logged = time.Now()
		}
		t := time.NewTimer(wait)
		for waiting := true; waiting; {
			select {
			case <-t.C:
				waiting = false
			case <-time.After(heartbeat):
				c.beat()
			case <-done:
				done = nil
				giveUp = time.After(drainTime)
			case <-giveUp:
				t.Stop()
				return fmt.Errorf("commit at the end: %w", err)
			}
		}
		wait = min(2*wait, retryMax)
		c.beat()
	}
}

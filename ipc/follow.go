package ipc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"steno/ipc/wire"
)

const (
	// pace is the least time between two empty pages at the head of the log.
	pace = 250 * time.Millisecond
	// slack is how much longer than the wait that it asked for a follower
	// gives the daemon before it takes the connection for lost.
	slack = 10 * time.Second
	// The delays between attempts to reach the daemon again.
	retryFirst = 50 * time.Millisecond
	retryMost  = 2 * time.Second
)

// FollowOptions says what Follow reads.
type FollowOptions struct {
	// Dial makes a connection; usually Dial of this package with a path.
	Dial func(context.Context) (*Client, error)
	// After is the cursor to begin with.
	After uint64
	// Limit is the most events of a page; 0 is wire.DefaultLimit.
	Limit int
	// Wait is the longest time without a page while the daemon is there, at
	// most 30 s. With 0 the head is asked four times a second.
	Wait time.Duration
	// Kinds and Agents filter as in wire.ReadParams.
	Kinds, Agents []string
	// Retry is how long a lost daemon is looked for; 0 is 30 s, a negative
	// value ends at the first loss.
	Retry time.Duration

	slack time.Duration // 0 is slack
}

// Follow gives page after page to each, in order, and empty ones too. Pages
// that are there already come without delay; at the head one request is held
// open for at most Wait. When the daemon goes away, Follow looks for it for at
// most Retry and goes on from its cursor; the first connection is not retried.
//
// It returns nil after it delivered a cursor_too_old page, the error of each,
// the context's error, or why the stream cannot go on.
func Follow(ctx context.Context, o FollowOptions, each func(wire.Page) error) error {
	if o.Retry == 0 {
		o.Retry = 30 * time.Second
	}
	if o.slack == 0 {
		o.slack = slack
	}
	if o.Wait < 0 || o.Wait > wire.MaxWait*time.Millisecond {
		o.Wait = wire.MaxWait * time.Millisecond
	}
	c, err := o.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	p := wire.ReadParams{
		After: o.After, Limit: o.Limit, Wait: o.Wait.Milliseconds(),
		Kinds: o.Kinds, Agents: o.Agents,
	}
	var lost time.Time // since when no page came, zero while they come
	delay := retryFirst
	for {
		asked := time.Now()
		var page wire.Page
		page, c, err = o.read(ctx, c, p)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if lost.IsZero() {
				lost = time.Now()
			}
			if !passing(err) || time.Since(lost)+delay > o.Retry {
				return fmt.Errorf("follow after %d: %w", p.After, err)
			}
			if err := pause(ctx, delay); err != nil {
				return err
			}
			delay = min(2*delay, retryMost)
			continue
		}
		lost, delay = time.Time{}, retryFirst
		if err := each(page); err != nil {
			return err
		}
		if page.Status == wire.CursorTooOld {
			return nil
		}
		p.After = *page.NextAfterSequence
		if rest := pace - time.Since(asked); rest > 0 && len(page.Events) == 0 && p.After >= page.LatestSequence {
			if err := pause(ctx, rest); err != nil {
				return err
			}
		}
	}
}

// read reads one page, over a new connection when there is none. It returns
// the connection to go on with, nil when that is of no more use.
func (o *FollowOptions) read(ctx context.Context, c *Client, p wire.ReadParams) (wire.Page, *Client, error) {
	limited, cancel := context.WithTimeout(ctx, o.Wait+o.slack)
	defer cancel()
	silent := func(err error) error {
		if limited.Err() != nil && ctx.Err() == nil {
			return fmt.Errorf("%w: no answer in %v", ErrUnreachable, o.Wait+o.slack)
		}
		return err
	}
	if c == nil {
		var err error
		if c, err = o.Dial(limited); err != nil {
			return wire.Page{}, nil, silent(err)
		}
	}
	page, err := c.ReadEvents(limited, p)
	if err != nil {
		c.Close()
		return page, nil, silent(err)
	}
	return page, c, nil
}

// passing says whether an error may go away by asking again.
func passing(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Code == CodeUnavailable || e.Code == CodeTooMany || e.Code == CodeInternal
	}
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrDisconnected)
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

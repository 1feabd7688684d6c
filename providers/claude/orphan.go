package claude

import "slices"

// see remembers a record and its turn. What was taken before it, although it
// hangs off it, joins that turn.
func (s *state) see(rec record, serial uint32) {
	missing := rec.missing
	if above := s.place(rec.parent); missing == 0 && above != nil {
		missing = above.missing
	}
	h := hash(rec.uuid)
	if rec.starts() || missing == h { // its turn is its own; or a circle
		missing = 0
	}
	s.adopt(h, serial, missing)
	if missing != 0 && missing == rec.missing {
		s.expect(missing)
	}
	if len(s.seen) >= maxSeen {
		s.seen = append(s.seen[:0], s.seen[1:]...)
	}
	s.seen = append(s.seen, place{h, serial, missing})
}

// expect remembers a parent that is missing. Of too many, the oldest is given
// up: what hangs off it keeps the turn that was guessed.
func (s *state) expect(parent uint64) {
	if slices.Contains(s.orphans, parent) {
		return
	}
	if len(s.orphans) >= maxOrphans {
		for k := range s.seen {
			if s.seen[k].missing == s.orphans[0] {
				s.seen[k].missing = 0
			}
		}
		s.orphans = slices.Delete(s.orphans, 0, 1)
	}
	s.orphans = append(s.orphans, parent)
}

// adopt gives what hangs off a late parent the parent's turn. When that one is
// a guess too, missing is the parent that decides it.
func (s *state) adopt(parent uint64, serial uint32, missing uint64) {
	i := slices.Index(s.orphans, parent)
	if i < 0 {
		return
	}
	for k := range s.seen {
		if s.seen[k].missing == parent {
			s.seen[k].turn, s.seen[k].missing = serial, missing
		}
	}
	s.orphans = slices.Delete(s.orphans, i, i+1)
}

// guess gives the first turn of a file all that was taken before it without a
// parent: nothing came before that turn. Its parent may still prove it wrong.
func (s *state) guess(serial uint32) {
	for k := range s.seen {
		if s.seen[k].missing != 0 {
			s.seen[k].turn = serial
		}
	}
}

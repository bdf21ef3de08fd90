package graphdata

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
)

// Revision names the content: 32 hexadecimal digits of a SHA-256, equal for
// snapshots that serve the same. It is computed anew at each call, which reads all.
func (s *Snapshot) Revision() string {
	sum := sha256.New()
	w := bufio.NewWriterSize(sum, 1<<16)
	var room [binary.MaxVarintLen64]byte
	number := func(n int) { _, _ = w.Write(binary.AppendUvarint(room[:0], uint64(n))) }
	text := func(t string) {
		number(len(t))
		_, _ = w.WriteString(t)
	}
	number(len(s.nodes))
	lists := map[int32]int{} // in the order of their first use
	for i, n := range s.nodes {
		text(n.version)
		text(n.image)
		text(n.arch)
		number(len(n.metadata))
		for _, key := range sortedKeys(n.metadata) {
			text(key)
			text(n.metadata[key])
		}
		number(len(s.in[i]))
		for _, f := range s.in[i] {
			number(int(f))
		}
		number(len(s.pairs[i]))
		for _, c := range s.pairs[i] {
			number(int(c.From))
			if at, known := lists[c.List]; known {
				number(at)
				continue
			}
			number(len(lists))
			lists[c.List] = len(lists)
			risks, _ := json.Marshal(s.lists[c.List]) // texts alone
			text(string(risks))
		}
	}
	_ = w.Flush() // a hash takes all
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Nodes returns how many releases there are, each architecture counted.
func (s *Snapshot) Nodes() int {
	n := 0
	for _, served := range s.served {
		n += len(served)
	}
	return n
}

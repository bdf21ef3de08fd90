package view_test

import "testing"

// FuzzStatus deletes and changes fields of clusters, those recorded included where
// there are any. An input is the number of a cluster, and edits of six bytes: a
// kind, an object, a value below that (two bytes), and what becomes of it (two bytes).
func FuzzStatus(f *testing.F) {
	clusters := wireClusters(f)
	for i := range clusters {
		f.Add(byte(i), []byte{})
		for kind := range byte(wireKinds) {
			f.Add(byte(i), []byte{kind, 0, 0, 9, 0, byte(len(oddValues)), kind, 1, 0, 14, 0, kind})
		}
	}
	f.Fuzz(func(t *testing.T, cluster byte, edits []byte) {
		c := *clusters[int(cluster)%len(clusters)]
		for ; len(edits) >= 6; edits = edits[6:] {
			c.edit(int(edits[0]), int(edits[1]), int(edits[2])<<8|int(edits[3]), int(edits[4])<<8|int(edits[5]))
		}
		checkStatus(t, c.decode())
	})
}

package yamljson_test

import (
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest/internal/yamljson"
)

func TestZZMutate(t *testing.T) {
	var d yamljson.Decoder
	r := rand.New(rand.NewSource(time.Now().UnixNano()))
	var docs []string
	for _, payload := range []string{"payload-4.17.30", "payload-4.18.15"} {
		files, _ := filepath.Glob(filepath.Join(testdata.Dir(t), payload, "release-manifests", "*.y*ml"))
		for _, f := range files {
			data, _ := os.ReadFile(f)
			for _, doc := range documents(string(data)) {
				if len(doc) < 4000 {
					docs = append(docs, doc)
				}
			}
		}
	}
	for _, n := range nasty {
		for range 3 {
			docs = append(docs, n.doc+"\n")
		}
	}
	for _, n := range scalars {
		docs = append(docs, "a: "+n+"\n")
	}
	frags := []string{" ", "  ", "\n", "\n\n", "\t", ":", ": ", "- ", "-", "#", " #", "'", "\"", "\\", "[", "]", "{", "}", ",", "|", ">", "|-\n", ">+\n", ">1\n", "&a ", "*a", "!", "%", "@", "?", "? ", "<<: ", "...", "\n...", "0o7", "1_000", ".5", "+1", "1e3", ".inf", "~", "=", "\u2028", "é", "\u00a0", "\\x41", "\\u00e9", "\\\n", "y", "null", "2001-01-01", "0x1F", "0b1", "-0", "-0.0", "1:30", "\n\n  ", "\n ", " \n", "\n# c\n", "\n  # c\n"}
	end := time.Now().Add(100 * time.Second)
	n, acc := 0, 0
	for time.Now().Before(end) && !t.Failed() {
		doc := docs[r.Intn(len(docs))]
		if len(doc) > 400 && r.Intn(4) > 0 {
			// take a window of whole lines
			lines := strings.SplitAfter(doc, "\n")
			i := r.Intn(len(lines))
			j := min(len(lines), i+1+r.Intn(12))
			doc = "x:\n" + strings.Join(lines[i:j], "")
			if r.Intn(2) == 0 { doc = strings.Join(lines[i:j], "") }
		}
		for range 1 + r.Intn(4) {
			i := r.Intn(len(doc) + 1)
			switch r.Intn(4) {
			case 0:
				j := min(len(doc), i+1+r.Intn(3))
				doc = doc[:i] + doc[j:]
			case 1:
				if len(doc) > 0 {
					j := r.Intn(len(doc))
					k := min(len(doc), j+r.Intn(8))
					doc = doc[:i] + doc[j:k] + doc[i:]
				}
			default:
				doc = doc[:i] + frags[r.Intn(len(frags))] + doc[i:]
			}
		}
		doc = strings.ReplaceAll(doc, "\n---", "\n -")
		if strings.HasPrefix(doc, "---") && r.Intn(2) == 0 { doc = doc[3:] }
		n++
		if check(t, &d, doc+"\n") {
			acc++
		}
	}
	t.Log(n, acc)
}

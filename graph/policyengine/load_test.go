package policyengine_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
)

// TestManyClients: hundreds of clients ask on loopback while graphs are swapped by
// several at a time and answers do not all fit. No request fails, and each answer is
// whole and one of those that were set, under the tag of its own content.
func TestManyClients(t *testing.T) {
	clients, requests := 400, 6
	if israce.Enabled {
		clients, requests = 200, 3
	}
	graphs := []*graphdata.Snapshot{sample(t), sample(t, "1.1.1"), sample(t, "1.1.1", "1.1.2")}
	channels := append(graphs[0].Channels("amd64"), "none")
	published := map[string]map[string]string{} // channel → body → tag
	for _, channel := range channels {
		published[channel] = map[string]string{}
		for _, g := range graphs {
			text := g.Graph(channel, "amd64").AppendJSON(nil)
			published[channel][string(text)] = tagOf(text)
		}
	}
	s := serve(t, policyengine.Options{MaxCached: 5000}, graphs[0])
	s.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = clients
	var group sync.WaitGroup
	for c := range clients {
		group.Go(func() {
			tag := "" // of the last answer
			for n := range requests {
				if (c+n)%20 == 0 {
					s.Set(graphs[(c/20+n)%len(graphs)])
					_ = s.Samples()
				}
				channel := channels[c%len(channels)]
				headers := [][]string{{}, {"Accept-Encoding", "gzip"}, {"If-None-Match", tag}}[(c+n)%3]
				got, err := s.try(http.MethodGet, "/api/graph?channel="+channel, headers...)
				if err != nil {
					t.Error(err)
					return
				}
				if got.code == http.StatusNotModified && tag != "" && got.Get("ETag") == tag {
					continue
				}
				body, suffix := got.body, ""
				if got.Get("Content-Encoding") == "gzip" {
					body, suffix = unzipped(t, got.body), "-gzip"
				}
				want, known := published[channel][body]
				tag = got.Get("ETag")
				if got.code != http.StatusOK || !known || tag != strings.TrimSuffix(want, `"`)+suffix+`"` {
					t.Errorf("%s: %d, %s: %s", channel, got.code, tag, body)
				}
			}
		})
	}
	group.Wait()
	if n := sampleValue(t, s.Samples(), "graph_incoming_requests_total"); n != float64(clients*requests) {
		t.Errorf("%v requests are counted", n)
	}
}

func unzipped(t *testing.T, text string) string {
	r, err := gzip.NewReader(bytes.NewReader([]byte(text)))
	if err != nil {
		t.Error(err)
		return ""
	}
	plain, err := io.ReadAll(r)
	checktest.Good(t, err)
	return string(plain)
}

package path_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
)

// What a network holds, what a release can be updated to, and how it gets to
// another one: as text. All of them are JSON, too.
func ExampleNetwork_Answer() {
	g, err := graph.DecodeBytes(sample.Graph(), graph.DecodeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	network, err := path.NewNetwork(context.Background(), path.NetworkOptions{}, path.ChannelGraph{Channel: sample.Channel, Arch: "amd64", Graph: g})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(network.Summary(), "\n")
	updates, err := network.Updates(context.Background(), "4.20.4", nil, time.Time{}, path.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(updates, "\n")
	answer, err := network.Answer(path.ExplainQuery{From: "4.20.3", To: "4.21.0", Policy: path.Policy{Edges: path.AnyEdge}}, 2, path.Shortest)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(answer)
	// Output:
	// Channels: stable-4.21 (amd64)
	// Releases: 4, from 4.20.3 to 4.21.1
	// Heads: 4.21.1
	//
	// 4.20.4 (amd64)
	// Offered channels: candidate-4.20, fast-4.20, stable-4.20, stable-4.21
	//
	// Updates in stable-4.21:
	//   4.21.1
	//   4.21.0  Recommended=False RouterReload: Requests may fail while routers reload their configuration. Version 4.21.1 corrects this. https://docs.example/known-issues/router-reload
	//
	// Reachable: 1 releases in up to 1 hops; the highest is 4.21.1 in 1.
	//
	// 4.20.3 can be updated to 4.21.0: the policy allows the update; it is conditional: risk RouterReload may apply: Requests may fail while routers reload their configuration. Version 4.21.1 corrects this. https://docs.example/known-issues/router-reload
	//
	// Path 1: 1 hop
	//   1. 4.20.3 -> 4.21.0  in stable-4.21  Unknown
	//        risk RouterReload: Applies=Unknown  Requests may fail while routers reload their configuration. Version 4.21.1 corrects this. https://docs.example/known-issues/router-reload
	//
	// Path 2: 2 hops
	//   1. 4.20.3 -> 4.20.4  in stable-4.21
	//   2. 4.20.4 -> 4.21.0  in stable-4.21  Unknown
	//        risk RouterReload: Applies=Unknown  Requests may fail while routers reload their configuration. Version 4.21.1 corrects this. https://docs.example/known-issues/router-reload
	//   Risks are judged by what is known today; later hops happen on another cluster.
}

// Package connection has the flags of the example programs that talk to a cluster.
package connection

import (
	"flag"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
)

// Flags are how to reach a cluster.
type Flags struct{ kubeconfig, context string }

// Declare declares the flags.
func (f *Flags) Declare(set *flag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "`file` that says how to reach the cluster (default: that of $KUBECONFIG or ~/.kube/config)")
	set.StringVar(&f.context, "context", "", "`name` of a context in that file (default: the current one)")
}

// Open returns the cluster. It does not ask it anything yet: errors are about the file,
// and name the flag -kubeconfig.
func (f *Flags) Open() (clusterapi.ClusterAPI, error) {
	files := clientcmd.NewDefaultClientConfigLoadingRules()
	files.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(files, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("-kubeconfig: %w", err)
	}
	return kubernetes.New(config, kubernetes.Options{UserAgent: "clusterupdate-example"})
}

package upgrade_test

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/fixture"
)

var (
	objectKey  = fixture.Key
	specA      = fixture.SpecA
	policies   = fixture.Policies
	object     = fixture.Object
	underWay   = fixture.UnderWay
	store      = fixture.Store
	stored     = fixture.Stored
	newCluster = fixture.NewCluster
	at         = fixture.At
	serving    = fixture.Serving
	history    = fixture.History
	configMap  = fixture.ConfigMap
	errText    = fixture.Text
	data       = fixture.Data
)

func must[T any](v T, err error) T { return checktest.Must(v, err) }

// looseDefinition is the definition without what its schema says of fields: to
// validate them takes a third of the time of an upgrade.
func looseDefinition() *unstructured.Unstructured {
	u := upgradeconfig.Definition()
	versions := u.Object["spec"].(map[string]any)["versions"].([]any)
	versions[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	return u
}

// What a controller keeps in the cluster.
const (
	annotationTold = clusterapi.AnnotationPrefix + "told"
	annotationOpen = clusterapi.AnnotationPrefix + "upgrade-open"
)

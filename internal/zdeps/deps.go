// Package zdeps is temporary.
package zdeps

import (
	_ "github.com/Masterminds/semver/v3"
	_ "github.com/ProtonMail/go-crypto/openpgp"
	_ "github.com/ProtonMail/go-crypto/openpgp/v2"
	_ "github.com/ProtonMail/go-crypto/openpgp/clearsign"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/go-cmp/cmp/cmpopts"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/sync/errgroup"
	_ "k8s.io/apimachinery/pkg/api/validation"
	_ "k8s.io/apimachinery/pkg/util/managedfields"
	_ "k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	_ "k8s.io/apimachinery/pkg/util/strategicpatch"
	_ "k8s.io/apimachinery/pkg/util/wait"
	_ "k8s.io/apimachinery/pkg/util/yaml"
	_ "k8s.io/kube-openapi/pkg/schemaconv"
	_ "k8s.io/kube-openapi/pkg/util/proto"
	_ "k8s.io/kube-openapi/pkg/validation/spec"
	_ "k8s.io/utils/clock"
	_ "k8s.io/utils/clock/testing"
	_ "pgregory.net/rapid"
	_ "sigs.k8s.io/json"
	_ "sigs.k8s.io/structured-merge-diff/v6/typed"
	_ "sigs.k8s.io/yaml"
	_ "golang.org/x/mod/semver"
)

package main

// The definitions are an intermediate product of 3 MB; they are not kept.

//go:generate sh -c "mkdir -p definitions && go tool openapi-gen --output-dir definitions --output-pkg github.com/clusterupdate/clusterupdate/clusterapi/memory/internal/genschema/definitions --output-file zz_generated.openapi.go --go-header-file /dev/null -r /dev/null $(go list k8s.io/api/... | grep -v -e '^k8s.io/api$' -e /admission/ -e /imagepolicy/ -e /apidiscovery/ | tr '\\n' ' ') k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/util/intstr k8s.io/apimachinery/pkg/api/resource k8s.io/apimachinery/pkg/version"
//go:generate go run . -schema ../../builtin.gob.gz -listkeys ../../../../internal/objects/listkeys.txt

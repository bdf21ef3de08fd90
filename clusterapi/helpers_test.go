package clusterapi_test

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}

func date(s string) *time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return &t
}

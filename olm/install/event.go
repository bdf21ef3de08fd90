package install

import "github.com/clusterupdate/clusterupdate/clusterapi"

// The types of events that a [Controller] sends. The Subject is
// "installplan/NAMESPACE/NAME", "subscription/NAMESPACE/NAME" or
// "namespace/NAME". Events have no Data. What took place just before a crash may
// come again, or not at all.
const (
	// EventResolutionFailed is the warning that OLM records on the Namespace: Err
	// is why the resolution failed. With a generation it comes for each
	// Subscription that gets nothing new, and for the namespace with the
	// generation's remarks, without Err. It comes when the reason changes.
	EventResolutionFailed clusterapi.EventType = "ResolutionFailed"
	// EventCatalogsChanged: a Subscription sees other catalogs, or others of
	// them answer. Message is the reason, such as CatalogSourcesAdded.
	EventCatalogsChanged clusterapi.EventType = "CatalogsChanged"
	// EventPlanCreated and the following are about an InstallPlan.
	EventPlanCreated   clusterapi.EventType = "PlanCreated"
	EventPlanApproved  clusterapi.EventType = "PlanApproved"
	EventPlanCompleted clusterapi.EventType = "PlanCompleted"
	EventPlanFailed    clusterapi.EventType = "PlanFailed"
	EventPlanDeleted   clusterapi.EventType = "PlanDeleted"
	// EventPlanSuperseded: the resolution no longer asks for a plan.
	EventPlanSuperseded clusterapi.EventType = "PlanSuperseded"
	// EventPlanRefused: a plan holds what is not carried out. Err is a
	// [*Refusal]. It comes when the reason changes.
	EventPlanRefused clusterapi.EventType = "PlanRefused"
	// EventCRDValidation: a plan updated a CustomResourceDefinition by whose schema
	// existing objects are invalid, since a webhook is to convert them. Err reports
	// which.
	EventCRDValidation clusterapi.EventType = "CRDValidation"
	// EventProgressing: a Subscription progresses to another operator, which
	// Message names.
	EventProgressing clusterapi.EventType = "Progressing"
	// EventError: a pass over a namespace, or a watch, failed and is tried
	// again. Only [Controller.Run] sends it.
	EventError clusterapi.EventType = "Error"
)

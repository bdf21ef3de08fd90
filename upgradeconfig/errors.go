package upgradeconfig

import "errors"

// Failures of a sync, as users of the managed-upgrade operator know them. Each
// comes wrapped together with its cause.
var (
	// ErrNotConfigured: neither the options nor the ConfigMap name a provider.
	ErrNotConfigured = errors.New("no upgrade config manager configured")
	// ErrRetrieveConfig: the UpgradeConfig cannot be read.
	ErrRetrieveConfig = errors.New("unable to retrieve upgradeconfigs")
	// ErrRetrievePolicies: the provider gave no answer. Nothing was changed.
	ErrRetrievePolicies = errors.New("unable to retrieve upgrade spec")
	// ErrRemove: the UpgradeConfig cannot be deleted.
	ErrRemove = errors.New("unable to remove existing UpgradeConfig")
	// ErrConfirmDeletion: the UpgradeConfig was deleted, but is still there,
	// or somebody created another since.
	ErrConfirmDeletion = errors.New("unable to confirm deletion of current UpgradeConfig")
	// ErrApply: the UpgradeConfig cannot be created or updated.
	ErrApply = errors.New("unable to apply UpgradeConfig changes")
	// ErrClusterVersion: whether an upgrade is in progress is not known.
	ErrClusterVersion = errors.New("can't determine cluster version")
)

// The faults that a [ConfigError] wraps, as users of the managed-upgrade operator
// know them.
var (
	errNoConfigManager = errors.New("no configManager defined in configuration")
	errNoSource        = errors.New("no configManager spec provider configured")
	errSource          = errors.New("invalid configManager spec provider type defined")
	errBaseURL         = errors.New("OCM Base URL is not a parseable URL")
	errLocalName       = errors.New("please use " + Name + " as the upgrade config name")
	errTimeOut         = errors.New("config upgrade window time out is invalid")
	errDelayTrigger    = errors.New("config upgrade window delay trigger is invalid")
)

//! The operators' custom resources: whether the server has them, in which
//! version, and their watch.

use std::time::Duration;

use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIGroup;
use kube::Client;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};

use super::failure::{Failure, Reason};
use super::watch::{Deaf, Feed, Scope, selecting};
use super::{Change, submission};
use crate::model::Operator;

const KIND: &str = "SparkApplication";
/// An operator may be installed later: looked for again so often.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

fn group(operator: Operator) -> &'static str {
    match operator {
        Operator::Kubeflow => "sparkoperator.k8s.io",
        Operator::Apache => "spark.apache.org",
    }
}

/// Waits until the server has them, and watches them until it has not.
pub(super) async fn watch(scope: Scope, operator: Operator, mut feed: Feed) {
    let watched: Result<(), Deaf> = async {
        loop {
            match served(&scope.client, operator).await {
                Ok(Some(resource)) => {
                    let read = |object: DynamicObject| submission::read(operator, &object);
                    let api = scope.api::<DynamicObject>(&resource);
                    let failure = feed.follow(api, selecting(None), &read).await?;
                    if failure.reason == Reason::NotFound {
                        // The kind went, and its objects with it.
                        feed.clear().await?;
                    } else {
                        feed.failed(failure).await?;
                    }
                }
                Ok(None) => {
                    feed.clear().await?;
                    feed.tell(Change::Absent).await?;
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                Err(error) => feed.failed(Failure::from(&error)).await?,
            }
        }
    }
    .await;
    drop(watched);
}

/// The resource in the version that the server prefers, or in any other that
/// it serves; `None` where it has no such kind.
async fn served(client: &Client, operator: Operator) -> Result<Option<ApiResource>, kube::Error> {
    let name = group(operator);
    let ask = Request::get(format!("/apis/{name}")).body(Vec::new());
    let group: APIGroup = match client.request(ask.map_err(kube::Error::HttpError)?).await {
        Ok(group) => group,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
        Err(error) => return Err(error),
    };
    let versions = group.preferred_version.into_iter().chain(group.versions);
    for version in versions {
        let listed = match client.list_api_group_resources(&version.group_version).await {
            Ok(listed) => listed,
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(error),
        };
        let found = listed.resources.iter().find(|resource| {
            // Not `sparkapplications/status`, which is of the same kind.
            resource.kind == KIND && !resource.name.contains('/')
        });
        if let Some(resource) = found {
            let kind = GroupVersionKind::gvk(name, &version.version, KIND);
            return Ok(Some(ApiResource::from_gvk_with_plural(&kind, &resource.name)));
        }
    }
    Ok(None)
}

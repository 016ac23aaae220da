//! Answers of whoever stands before a gRPC server: a proxy that answers by
//! itself (502, 413, 401) sends a page, which is no message of gRPC. Taken
//! for one it would only be called a broken one.

use std::pin::Pin;
use std::task::{Context, Poll};

use ::http::{Request, Response};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::transport::{Channel, Error};

/// A channel whose answers are without their body where they are none of
/// gRPC: what is left is the status, for which gRPC has a code.
pub(super) struct Proxied(pub(super) Channel);

impl Service<Request<Body>> for Proxied {
    type Response = Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            let of_grpc =
                answer.status().is_success() || answer.headers().contains_key("grpc-status");
            Ok(if of_grpc { answer } else { answer.map(|_| Body::empty()) })
        })
    }
}

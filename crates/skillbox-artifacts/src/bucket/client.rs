//! Builds the client of a provider from a bucket's URL and the options.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{HttpClient, HttpConnector};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};

use super::options::BucketOptions;
use crate::{Bucket, Endpoint, Provider, StoreError};

/// The connect timeout of requests to the store. A reachable server accepts a connection much faster.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The connect timeout of requests to the hosts that provide credentials.
const CREDENTIALS_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest silence on a connection, including the upload of a part.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_RETRIES: usize = 2;
/// The time limit for all retries of a request.
const RETRY_TIMEOUT: Duration = Duration::from_secs(15);

/// Builds the client without connecting.
pub(super) fn build_client(bucket: &Bucket, options: &BucketOptions) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let client_options = ClientOptions::new().with_allow_http(is_http_allowed(bucket, options)?);
    let connector = Connector::new(options);
    let retry = RetryConfig {
        max_retries: MAX_RETRIES,
        retry_timeout: RETRY_TIMEOUT,
        backoff: BackoffConfig::default(),
    };
    let url = bucket.root_url();
    let built: object_store::Result<Arc<dyn ObjectStore>> = match bucket.provider {
        Provider::S3 => {
            let mut builder = AmazonS3Builder::new().with_client_options(client_options).with_url(url);
            for (key, value) in provider_variables::<AmazonS3ConfigKey>(options) {
                builder = builder.with_config(key, value);
            }
            if let Some(endpoint) = &options.endpoint {
                builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, endpoint.as_str());
            }
            if let Some(region) = &options.region {
                builder = builder.with_region(region);
            }
            let built = builder.with_retry(retry).with_http_connector(connector).build();
            built.map(|client| Arc::new(client) as _)
        }
        Provider::Google => {
            let mut builder = GoogleCloudStorageBuilder::new()
                .with_client_options(client_options)
                .with_url(url);
            for (key, value) in provider_variables::<GoogleConfigKey>(options) {
                builder = builder.with_config(key, value);
            }
            if let Some(endpoint) = &options.endpoint {
                builder = builder.with_config(GoogleConfigKey::BaseUrl, endpoint.as_str());
            }
            let built = builder.with_retry(retry).with_http_connector(connector).build();
            built.map(|client| Arc::new(client) as _)
        }
        Provider::Azure => {
            let mut builder = MicrosoftAzureBuilder::new()
                .with_client_options(client_options)
                .with_url(url);
            for (key, value) in provider_variables::<AzureConfigKey>(options) {
                // With this setting the library would start a program, and only the executor may start programs.
                if !matches!(key, AzureConfigKey::UseAzureCli) {
                    builder = builder.with_config(key, value);
                }
            }
            if let Some(endpoint) = &options.endpoint {
                builder = builder.with_endpoint(endpoint.to_string());
            }
            let built = builder.with_retry(retry).with_http_connector(connector).build();
            built.map(|client| Arc::new(client) as _)
        }
    };
    built.map_err(|error| StoreError::Setup {
        location: bucket.to_string(),
        message: error.to_string(),
        hint: bucket.provider.credentials_hint(),
    })
}

/// The variables that apply to a provider. Variables about the HTTP connection are ignored, because this module
/// configures it.
fn provider_variables<K: std::str::FromStr + AsRef<str>>(options: &BucketOptions) -> impl Iterator<Item = (K, &str)> {
    options.variables.iter().filter_map(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let is_of_provider = BucketOptions::VARIABLE_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(&prefix.to_ascii_lowercase()));
        let is_connection_setting = name
            .split_once('_')
            .is_some_and(|(_, rest)| rest.parse::<ClientConfigKey>().is_ok());
        (is_of_provider && !is_connection_setting).then_some(())?;
        Some((name.parse().ok()?, value.as_str()))
    })
}

/// Whether plain HTTP is allowed. An endpoint with plain HTTP is an error, unless it is this host or a variable allows
/// it.
fn is_http_allowed(bucket: &Bucket, options: &BucketOptions) -> Result<bool, StoreError> {
    let variable = |name: &str| options.variables.get(name).map(String::as_str);
    let setup = |message: String, hint| StoreError::Setup {
        location: bucket.to_string(),
        message,
        hint,
    };
    let endpoint_variable = match bucket.provider {
        Provider::S3 => variable("AWS_ENDPOINT_URL_S3")
            .or_else(|| variable("AWS_ENDPOINT_URL"))
            .or_else(|| variable("AWS_ENDPOINT")),
        Provider::Google => variable("GOOGLE_BASE_URL"),
        Provider::Azure => variable("AZURE_STORAGE_ENDPOINT").or_else(|| variable("AZURE_ENDPOINT")),
    };
    let endpoint = match (&options.endpoint, endpoint_variable) {
        (Some(endpoint), _) => endpoint.clone(),
        (None, Some(text)) => Endpoint::parse(text)
            .map_err(|error| setup(error.to_string(), "correct the provider's endpoint variable"))?,
        (None, None) => return Ok(false),
    };
    if endpoint.is_encrypted() {
        return Ok(false);
    }
    let is_allowed = ["AWS_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP", "AZURE_ALLOW_HTTP"]
        .iter()
        .any(|name| variable(name) == Some("true"));
    if endpoint.is_loopback() || is_allowed {
        return Ok(true);
    }
    let message = format!("the endpoint {endpoint} would be used without encryption");
    Err(setup(
        message,
        "use https://, or set AWS_ALLOW_HTTP=true if the network is trusted",
    ))
}

/// Creates HTTP clients. The library's own connector would read proxies from the environment.
#[derive(Clone, Debug)]
struct Connector {
    proxies: Vec<(ProxyScheme, String)>,
    no_proxy: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum ProxyScheme {
    Http,
    Https,
    All,
}

impl Connector {
    fn new(options: &BucketOptions) -> Self {
        let kinds = [
            (ProxyScheme::Https, "HTTPS_PROXY"),
            (ProxyScheme::Http, "HTTP_PROXY"),
            (ProxyScheme::All, "ALL_PROXY"),
        ];
        let proxies = kinds
            .iter()
            .filter_map(|(kind, name)| Some((*kind, options.proxy_variable(name)?.to_owned())));
        Self {
            proxies: proxies.collect(),
            no_proxy: options.proxy_variable("NO_PROXY").map(str::to_owned),
        }
    }

    fn build_http_client(&self, allow_http: bool, connect_timeout: Duration) -> reqwest::Result<reqwest::Client> {
        // The call fails if a crypto provider is already installed. Any provider is fine.
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("skillbox/", env!("CARGO_PKG_VERSION")))
            .no_proxy()
            .https_only(!allow_http)
            .http1_only()
            .connect_timeout(connect_timeout)
            .read_timeout(READ_TIMEOUT);
        for (kind, address) in &self.proxies {
            let proxy = match kind {
                ProxyScheme::Http => reqwest::Proxy::http(address),
                ProxyScheme::Https => reqwest::Proxy::https(address),
                ProxyScheme::All => reqwest::Proxy::all(address),
            }?;
            let no_proxy = self.no_proxy.as_deref().and_then(reqwest::NoProxy::from_string);
            builder = builder.proxy(proxy.no_proxy(no_proxy));
        }
        builder.build()
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        // The library uses a shorter timeout for the hosts that provide credentials.
        let is_credentials_request =
            options.get_config_value(&ClientConfigKey::ConnectTimeout).as_deref() == Some("1s");
        let connect_timeout = if is_credentials_request {
            CREDENTIALS_CONNECT_TIMEOUT
        } else {
            CONNECT_TIMEOUT
        };
        let client = self.build_http_client(allow_http.as_deref() == Some("true"), connect_timeout);
        client
            .map(HttpClient::new)
            .map_err(|source| object_store::Error::Generic {
                store: "HTTP client",
                source: Box::new(source),
            })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Location;

    fn client_description(url: &str, variables: &[(&str, &str)], endpoint: Option<&str>) -> Result<String, StoreError> {
        let Location::Bucket(bucket) = Location::parse(url, Path::new("")).unwrap() else {
            panic!("{url} is a directory");
        };
        let variables = variables
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        let options = BucketOptions {
            variables: variables.collect(),
            endpoint: endpoint.map(|text| Endpoint::parse(text).unwrap()),
            ..BucketOptions::new("")
        };
        build_client(&bucket, &options).map(|client| client.to_string())
    }

    const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];

    #[test]
    fn every_provider_has_a_client() {
        assert_eq!(
            client_description("s3://bucket/x", &KEYS, None).unwrap(),
            "AmazonS3(bucket)"
        );
        let token = [("GOOGLE_BEARER_TOKEN", "t")];
        assert_eq!(
            client_description("gs://bucket/x", &token, None).unwrap(),
            "GoogleCloudStorage(bucket)"
        );
        let account = [
            ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
            ("AZURE_STORAGE_ACCOUNT_KEY", "a2V5"),
            ("AZURE_USE_AZURE_CLI", "true"),
        ];
        let azure = client_description("az://box/x", &account, None).unwrap();
        assert!(
            azure.contains("account: account") && azure.contains("container: box"),
            "{azure}"
        );
        let url = "abfss://box@account.dfs.core.windows.net/x";
        assert!(
            client_description(url, &account[1..], None)
                .unwrap()
                .contains("account: account")
        );
    }

    #[test]
    fn a_missing_secret_key_is_reported_with_a_hint() {
        let error = client_description("s3://bucket", &KEYS[..1], None).unwrap_err();
        assert!(error.to_string().contains("SecretAccessKey"), "{error}");
        assert!(error.hint().unwrap().contains("AWS_SECRET_ACCESS_KEY"));
    }

    #[test]
    fn s31_plain_http_needs_explicit_permission() {
        assert!(client_description("s3://bucket", &KEYS, Some("http://127.0.0.1:9000")).is_ok());
        assert!(client_description("s3://bucket", &KEYS, Some("http://localhost:9000")).is_ok());
        assert!(client_description("s3://bucket", &KEYS, Some("http://[::1]:9000")).is_ok());
        assert!(client_description("s3://bucket", &KEYS, Some("https://store.example")).is_ok());
        let clear = client_description("s3://bucket", &KEYS, Some("http://store.example")).unwrap_err();
        assert!(clear.to_string().contains("without encryption"), "{clear}");
        let by_variable = [KEYS[0], KEYS[1], ("AWS_ENDPOINT_URL", "http://store.example")];
        assert!(client_description("s3://bucket", &by_variable, None).is_err());
        let allowed = [KEYS[0], KEYS[1], ("AWS_ALLOW_HTTP", "true")];
        assert!(client_description("s3://bucket", &allowed, Some("http://store.example")).is_ok());
        let by_invalid_variable = [KEYS[0], KEYS[1], ("AWS_ENDPOINT_URL", "store.example")];
        assert!(client_description("s3://bucket", &by_invalid_variable, None).is_err());
        let not_this_host = client_description("s3://bucket", &KEYS, Some("http://127.example.com")).unwrap_err();
        assert!(
            not_this_host.to_string().contains("without encryption"),
            "{not_this_host}"
        );
    }
}

"""What a request costs through the gateway, beside bare proxies and other gateways."""

# Three images from one build: `docker build --target agent .`, `--target fleet` and `--target server` (the default).
# `npm run package:all` builds them with buildah and starts each. None holds a key, a configuration or a repository: those are mounted when the container starts.

FROM node:26-slim AS build
WORKDIR /src
COPY package.json package-lock.json ./
# `prepare` would build before the sources are here.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY scripts/ scripts/
COPY src/ src/
# The maps lead to sources that are in no image.
RUN npm run build && rm dist/writ/*.map

FROM node:26-slim AS runtime
ENV NODE_ENV=production
WORKDIR /opt/writ
COPY package.json package-lock.json ./
# Without --ignore-scripts `prepare` would run here, without the compiler that --omit=dev leaves out.
# What only the fleet server loads is in its image alone.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund \
  && npm cache clean --force
COPY --from=build /src/dist/writ/ dist/writ/
RUN ln -s /opt/writ/dist/writ/main.js /usr/local/bin/writ
ENTRYPOINT ["node", "/opt/writ/dist/writ/main.js"]

# Mount /etc/writ (agent.yaml, root.json) read-only and /var/lib/writ as a volume; workers in other containers
# mount /var/lib/writ/policy read-only. Run it with --init: hooks can leave children behind. Without user namespaces the
# container is their only sandbox: docs/sandbox.md says what it takes to have one inside.
FROM runtime AS agent
# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install -y --no-install-recommends bubblewrap \
  && rm -rf /var/lib/apt/lists/*
RUN install -d -o 10001 -g 10001 -m 0711 /var/lib/writ \
  && install -d -o 10001 -g 10001 -m 0755 /run/writ
VOLUME ["/var/lib/writ"]
USER 10001:10001
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
  CMD ["node", "/opt/writ/dist/writ/main.js", "health", "--config", "/etc/writ/agent.yaml", "--fail-on", "critical"]
CMD ["agent", "--config", "/etc/writ/agent.yaml"]

# Mount a volume at /var/lib/writ-fleet, or set WRIT_FLEET_STORE to a postgres:// URL. Hosts reach it over TLS: mount certificate and
# key, set WRIT_FLEET_SERVE_TLS_CERT and WRIT_FLEET_SERVE_TLS_KEY, and WRIT_HEALTH_URL with https.
FROM runtime AS fleet
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
  && npm cache clean --force \
  && install -d -o 10001 -g 10001 -m 0700 /var/lib/writ-fleet
ENV WRIT_FLEET_STORE=/var/lib/writ-fleet
ENV WRIT_FLEET_SERVE_LISTEN=0.0.0.0:8090
ENV WRIT_HEALTH_URL=http://127.0.0.1:8090/healthz
VOLUME ["/var/lib/writ-fleet"]
USER 10001:10001
EXPOSE 8090
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch(process.env.WRIT_HEALTH_URL).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["fleet", "serve"]

# Mount the repository at /srv/writ: read-only, or writable with `--keys` so that the server can re-sign.
# With TLS set WRIT_HEALTH_URL, and NODE_EXTRA_CA_CERTS where the certificate is your own.
FROM runtime AS server
ENV WRIT_HEALTH_URL=http://127.0.0.1:8080/healthz
USER 10001:10001
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch(process.env.WRIT_HEALTH_URL).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["serve", "--repository", "/srv/writ", "--listen", "0.0.0.0:8080"]

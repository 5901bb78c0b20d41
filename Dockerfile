# docker build -t deepagent-mcp .        docs/scale.md says how to run it.
# Published in docker-library/repo-info, repos/node/remote/22-slim.md. The digest decides; the tag is for readers.
ARG NODE_IMAGE=docker.io/library/node:22-slim@sha256:48e4b67d85f87bd551df43704e24d252f56cc5f8e9718841aace50f19948f0f9

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
RUN npm run package

# The few packages that are not in the bundle, and those that Postgres, S3 and traces need. None of them runs a
# script, the lockfile gives their versions, and nothing is compiled: Node 22 brings SQLite, so better-sqlite3 stays out.
FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package-lock.json ./
COPY --from=build /app/build/package/package.json ./
RUN npm pkg set $(node -p "['pg', '@aws-sdk/client-s3', '@opentelemetry/api'].map((name) => \`dependencies.\${name}=\${require('./package.json').peerDependencies[name]}\`).join(' ')") \
  && npm pkg delete optionalDependencies peerDependencies \
  && npm install --no-save --ignore-scripts \
  && find node_modules -type f \( -name "*.map" -o -name "*.d.ts" -o -name "*.d.cts" -o -name "*.d.mts" \) -delete

FROM ${NODE_IMAGE}
# Commands leave processes behind whose parent has ended. tini, as process 1, waits for them; Node would not.
RUN apt-get update \
  && apt-get install -y --no-install-recommends tini \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
  && install -d -o 1000 -g 1000 /data /workspace
WORKDIR /app
COPY package.json config.schema.json LICENSE ./
COPY skills skills
COPY demo demo
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
RUN ln -s /app/dist/bin/deepagent-mcp.js /usr/local/bin/deepagent-mcp

ENV NODE_ENV=production \
  DEEPAGENT_DATA_DIR=/data \
  DEEPAGENT_HTTP_HOST=0.0.0.0 \
  DEEPAGENT_HTTP_PORT=8808
VOLUME ["/data", "/workspace"]
# The agent works in the current folder unless the configuration names another one.
WORKDIR /workspace
USER 1000:1000
EXPOSE 8808
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.DEEPAGENT_HTTP_PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tini", "--", "deepagent-mcp"]
CMD ["serve", "--http"]

ARG VERSION=""
ARG REVISION=""
ARG SOURCE=""
LABEL org.opencontainers.image.title="deepagent-mcp" \
  org.opencontainers.image.description="An MCP server that gives any client a durable deep agent" \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}" \
  org.opencontainers.image.source="${SOURCE}"

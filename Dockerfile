# Node 26 runs the TypeScript sources. Dependabot raises tag and digest, in both stages.
FROM node:26.10.0-trixie-slim@sha256:930557a230abacbc3f4fd9b8648abf8f4bee1e17cb72195dcdfb2f709bc85b33 AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts

FROM node:26.10.0-trixie-slim@sha256:930557a230abacbc3f4fd9b8648abf8f4bee1e17cb72195dcdfb2f709bc85b33
ENV NODE_ENV=production
# The addresses of both families.
ENV HOST=::
ENV PORT=4000
# For a volume with a STATE_FILE. OpenShift gives a container any user, of the group 0.
RUN mkdir -m 770 /state && chown 1000:0 /state
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json ./
COPY src ./src
# GraphiQL's files, compressed: its first visit would need 100 MB.
RUN node src/graphiql/make-assets.ts
# The user node, as a number: Kubernetes cannot tell by a name that it is not root.
USER 1000
# Caches the compiled modules, so that the first start is as fast as the second.
RUN NODE_ENV= sh src/program/entrypoint.sh --sandbox --port 0 >/tmp/started & \
  until grep -q ^curl /tmp/started; do kill -0 $! && sleep 0.1 || exit 1; done; kill $! && wait $! && rm /tmp/started
EXPOSE 4000
# Without the variables of the container: some would load a tracing SDK, or lead through a proxy, every ten seconds.
HEALTHCHECK --interval=10s --start-period=5s --retries=3 \
  CMD ["env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", "node", "src/program/check-health.ts"]
ENTRYPOINT ["sh", "src/program/entrypoint.sh"]

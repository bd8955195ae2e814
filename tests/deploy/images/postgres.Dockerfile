# Stands for postgres:17 where no registry can be reached: the same server (of Debian), user, folder, and an entrypoint that
# knows the variables which deploy/compose.yaml sets.
FROM python:3.13-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends postgresql-17 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/lib/postgresql/17 \
    && install -d -o postgres -g postgres -m 3777 /run/postgresql \
    && install -d -o postgres -g postgres -m 700 /var/lib/postgresql/data
COPY postgres-entrypoint /usr/local/bin/
ENV PATH=/usr/lib/postgresql/17/bin:$PATH PGDATA=/var/lib/postgresql/data
VOLUME /var/lib/postgresql/data
ENTRYPOINT ["postgres-entrypoint"]
CMD ["postgres"]

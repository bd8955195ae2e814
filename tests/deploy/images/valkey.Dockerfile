# Stands for valkey/valkey:8 where no registry can be reached: the same server (of Debian), user, folder and entrypoint.
FROM python:3.13-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends valkey-server valkey-tools \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
    && install -d -o valkey -g valkey /data
VOLUME /data
WORKDIR /data
CMD ["valkey-server"]

#!/bin/sh
# release-notes.sh TAG URL: what CHANGELOG.md says of the version and of upgrading, and the commits since the tag before.
set -eu
tag=$1 url=$2

# A release is no file of the repository, so its links are absolute.
section() {
  awk -v title="$1" '/^## /{ shown = $2 == title } shown' CHANGELOG.md |
    sed -E "s|\]\(#|](CHANGELOG.md#|g; s|\]\(([^):]+)\)|]($url/blob/$tag/\1)|g"
}

section "${tag#v}"
section Upgrading
if previous=$(git describe --tags --abbrev=0 --match 'v*' "$tag^" 2>/dev/null); then
  printf '\n## Commits\n\n'
  # GitHub takes notes of 125,000 characters.
  git log --no-merges --max-count=1000 --format='- %s' "$previous..$tag"
  printf '\n[All changes](%s/compare/%s...%s)\n' "$url" "$previous" "$tag"
fi

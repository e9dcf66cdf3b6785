const withAll = process.env['SITE_OPTIONS'] === 'all';

export default { trailingSlash: withAll, cacheComponents: withAll };

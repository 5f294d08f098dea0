/* tsc copies no icons. */
const fs = require('node:fs');

for (const node of ['Once', 'OnceDone'])
    fs.copyFileSync(`${__dirname}/nodes/${node}/semel.svg`, `${__dirname}/dist/nodes/${node}/semel.svg`);

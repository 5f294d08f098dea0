#include "app.h"
int main(int argc,char**argv){ struct app_options o={.data_dir=argv[1],.listen=argv[2],.open=true,.log_level=LOG_INFO,.postgres_url=argc>3&&argv[3][0]?argv[3]:0,.policy_file=argc>4?argv[4]:0}; return app_run(&o);}

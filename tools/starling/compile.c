#include "compile.h"
#include "command.h"

int command_compile(int argc, char **argv)
{
        return sl_compile_child_main(argc, argv);
}
